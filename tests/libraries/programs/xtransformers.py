"""x-transformers: a decoder with rotary positions, an encoder with ALiBi."""

from harness import ints, torch, train
from x_transformers import (
    AutoregressiveWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
)

m = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=17,
        max_seq_len=16,
        attn_layers=Decoder(
            dim=24,
            depth=2,
            heads=2,
            attn_dim_head=12,
            rotary_pos_emb=True,
            ff_glu=True,
            use_rmsnorm=True,
            attn_qk_norm=True,
        ),
    )
).double()
x = ints(17, 3, 12)
train(m, lambda m: m(x))
m = TransformerWrapper(
    num_tokens=17,
    max_seq_len=16,
    attn_layers=Encoder(
        dim=24,
        depth=2,
        heads=2,
        attn_dim_head=12,
        alibi_pos_bias=True,
        attn_qk_norm=True,
        use_scalenorm=True,
        sandwich_norm=True,
    ),
).double()
train(m, lambda m: m(x).pow(2).mean(), tag="enc", opt=lambda p: torch.optim.SGD(p, lr=0.05))
