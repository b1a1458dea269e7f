"""kornia: warps that are learnt, epipolar geometry, filters, colours."""

import kornia
import kornia.geometry as G
from harness import data, rec, torch, train

img = data(2, 3, 12, 12).sigmoid()


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ang = torch.nn.Parameter(torch.tensor([10.0, -5.0]))
        self.tr = torch.nn.Parameter(torch.tensor([[1.0, 0.5], [0.2, -0.3]]))
        self.h = torch.nn.Parameter(torch.eye(3)[None].repeat(2, 1, 1) + 0.01 * data(2, 3, 3, seed=11))

    def forward(self, x):
        c = torch.tensor([[5.5, 5.5]]).repeat(2, 1)
        A = G.transform.get_rotation_matrix2d(c, self.ang, torch.ones(2, 2))
        y = G.transform.warp_affine(x, A, (12, 12))
        y = G.transform.translate(y, self.tr)
        return G.transform.warp_perspective(y, self.h, (12, 12))


tgt = data(2, 3, 12, 12, seed=7).sigmoid()
train(M(), lambda m: (m(img) - tgt).pow(2).mean(), do_fill=False, opt=lambda p: torch.optim.SGD(p, lr=0.1))
rec("rot", G.rotate(img, torch.tensor([30.0]).repeat(2)))
rec("q", G.conversions.axis_angle_to_rotation_matrix(data(3, 3)))
rec("quat", G.conversions.rotation_matrix_to_quaternion(G.conversions.axis_angle_to_rotation_matrix(data(3, 3))))
p1, p2 = data(1, 8, 2), data(1, 8, 2, seed=5)
rec("hom", G.homography.find_homography_dlt(p1, p2))
rec("fund", G.epipolar.find_fundamental(data(1, 10, 2), data(1, 10, 2, seed=5)))
rec("blur", kornia.filters.gaussian_blur2d(img, (5, 5), (1.5, 1.5)))
rec("sobel", kornia.filters.sobel(img))
rec("hsv", kornia.color.rgb_to_hsv(img))
rec("lab", kornia.color.rgb_to_lab(img))
rec("canny", kornia.filters.canny(img)[0])
rec("ssim", kornia.metrics.ssim(img, tgt, 5))
rec("pyr", kornia.geometry.transform.pyrdown(img))
rec("med", kornia.filters.median_blur(img, (3, 3)))
rec("proj", G.project_points(data(4, 3).abs() + 1, torch.eye(3).repeat(4, 1, 1)))
rec("harris", kornia.feature.harris_response(img))
rec("dist", kornia.filters.bilateral_blur(img, (3, 3), 0.1, (1.5, 1.5)))
