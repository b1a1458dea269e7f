"""The functions of neural networks, without state: what the ops publish under ``nn.functional``."""
