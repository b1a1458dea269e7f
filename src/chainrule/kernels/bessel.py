"""Modified Bessel functions as formulas of the loop language, for float32: computed in double precision, rounded once."""

from __future__ import annotations

from .calls import NotSupported
from .functions import _const, narrow
from .lang import Kernel, Value
from .math import INF, _poly, exp

# In (a - c)/(a + c), to some 5e-10: f(a) (1 + 3a/2)**(n + 1/2), where f is the mean over s in [0, pi] of (1 - cos s)**n exp(-a (1 - cos s)) for
# n = 0 (this is exp(-a) I_0), 1, 2; then exp(-a) I_1(a)/a with n = 1 and exp(-a) I_2(a)/a² with n = 2. Chebyshev fits as in `functions`.
_MEAN_0 = (
    0.5476756045250941, -0.12852646347432187, 0.15800650595986, -0.190683582223951, 0.16688864622188762,
    -0.021197462314232595, -0.1586826892286579, 0.138536475043846, 0.06771328445413244, -0.09707701319320693,
    -0.08361916502023649, 0.058794388216811995, 0.10428878726568086, -0.002548325056960995,
    -0.10969631446448093, -0.043752300169313585, 0.08369950152230154, 0.057134635317125475,
    -0.04384826073506343, -0.03805540474593595, 0.013940365013323436, 0.013805467283776872,
    -0.002065009598316684, -0.002129158858974101,
)  # fmt: skip
_MEAN_1 = (
    0.4618814317818819, -0.22149583076957285, 0.306863960722067, -0.4519345479953873, 0.6206059446784135,
    -0.5686051580535858, -0.11605102359632367, 1.3136763852758226, -1.6459022745280287, -0.0892161996861278,
    1.9800913517793741, -0.7402609043490097, -1.8627776610775515, 0.8233133752862088, 1.9350839112789613,
    -0.5936837639287024, -1.95560167214087, 0.26454803069280736, 1.6836551794221677, -0.030910080621880987,
    -1.112966231120977, -0.04435923837651505, 0.5171456115918333, 0.02786681676653219, -0.1487218246155087,
    -0.005712942342232434, 0.019919237848128428,
)  # fmt: skip
_MEAN_2 = (
    1.1033685072219288, -0.6668879292678244, 0.9608931764806369, -1.4882406177612406, 2.401281199042687,
    -3.462795628102161, 2.9906841590323556, 2.3897607487905503, -13.237729959119164, 18.861197474345115,
    -2.0268470341727767, -29.547525217949897, 29.305494925173516, 20.126755674113227, -44.68900824939289,
    -9.481783441035576, 48.73499069919033, 5.334741546455142, -44.91923615902838, -5.360061651231798,
    34.1126320986573, 5.745364285773057, -19.952878943153067, -4.490077624494216, 8.235539790218185,
    2.306801720809835, -2.104243122446906, -0.7017694343499383, 0.2473172821090187, 0.09677846337517425,
)  # fmt: skip
_FIRST = (
    0.8013815548216782, -0.1180331519524379, 0.07159877310120907, -0.0024400111242733054, -0.0977237800681791,
    0.21328140382302008, -0.27037791173691395, 0.16472590662720835, 0.0834225258358203, -0.22729608863702463,
    0.06990924564860217, 0.15353615181600944, -0.08285488558991011, -0.11781926073693827, 0.07028308501039784,
    0.0843837618072518, -0.04692287741342518, -0.04873256902611511, 0.02508299781734937, 0.018183504400412043,
    -0.009052169359873592, -0.003337763072519986, 0.0017053257233796374,
)  # fmt: skip
_SECOND = (
    1.0187243476091785, 0.23740370694103893, -0.36160855728045194, 0.40265434574793485, -0.3032767107684114,
    0.04048492445005266, 0.2730392877744972, -0.367401011203266, 0.08314423601256792, 0.2724654998439821,
    -0.1979218955415027, -0.17356835940905255, 0.1829429969627261, 0.14371186978237513, -0.139491484846995,
    -0.12583770450981294, 0.08616246446624096, 0.09204177391492675, -0.039506087976102014,
    -0.047763739215194945, 0.011588391689706417, 0.015165837751793686, -0.0016191622602295958,
    -0.0021793183055816966,
)  # fmt: skip
_MEANS = ((4.0, _MEAN_0), (6.0, _MEAN_1), (8.0, _MEAN_2))


def _falling(k: Kernel, a: Value, c: float, p: tuple[float, ...], order: int) -> Value:
    """A polynomial in (a - c)/(a + c), over (1 + 3a/2)**(order + 1/2)"""
    u = k.fma(a, 1.5, 1.0)
    d = k.sqrt(u)
    for _ in range(order):
        d = d * u
    return _poly(k, (a - c) / (a + c), p) / d


def _finite(k: Kernel, x: Value, y: Value, far: Value | float) -> Value:
    """y, at the infinities `far`, of NaN NaN"""
    return k.select(abs(x) < INF, y, k.select(x.ne(x), x, far))


def _mean(k: Kernel, x: Value, order: int) -> Value:
    """The mean of (1 - cos s)**order exp(-|x| (1 - cos s))"""
    scale, p = _MEANS[order]
    return _finite(k, x, _falling(k, abs(x), scale, p, order), 0.0)


def _first(k: Kernel, x: Value) -> Value:
    """exp(-|x|) I_1(x)"""
    return _finite(k, x, x * _falling(k, abs(x), 6.0, _FIRST, 1), k.copysign(_const(k, 0.0, x), x))


def _second(k: Kernel, x: Value) -> Value:
    """exp(-|x|) I_2(x)"""
    return _finite(k, x, x * x * _falling(k, abs(x), 6.0, _SECOND, 2), 0.0)


def _grown(k: Kernel, y: Value, x: Value) -> Value:
    """y exp(|x|); beyond 100 it is no number of float32"""
    return k.select(abs(x) < 100.0, exp(k, abs(x)) * y, k.select(x.ne(x), x, k.copysign(_const(k, INF, x), y)))


@narrow
def i0(k: Kernel, x: Value) -> Value:
    """I_0"""
    return _grown(k, _mean(k, x, 0), x)


@narrow
def i0e(k: Kernel, x: Value) -> Value:
    """exp(-|x|) I_0(x)"""
    return _mean(k, x, 0)


@narrow
def i1(k: Kernel, x: Value) -> Value:
    """I_1"""
    return _grown(k, _first(k, x), x)


@narrow
def i1e(k: Kernel, x: Value) -> Value:
    """exp(-|x|) I_1(x)"""
    return _first(k, x)


@narrow
def bessel_in(k: Kernel, x: Value, n: int) -> Value:
    """I_n, for n = 2"""
    if n != 2:
        raise NotSupported
    return _grown(k, _second(k, x), x)


@narrow
def scaled_i(k: Kernel, x: Value, n: int) -> Value:
    """The mean of (1 - cos s)**n exp(-|x| (1 - cos s)), up to n = 2"""
    if n >= len(_MEANS):
        raise NotSupported
    return _mean(k, x, n)


FUNCTIONS = {f.__name__: f for f in (i0, i0e, i1, i1e, bessel_in, scaled_i)}
