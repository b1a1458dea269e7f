"""What a kernel says to its op: there is no code for these arrays. Known to the core and to the kernels, which do not know each other."""


class NotSupported(Exception):
    """A request to fall back, not an error: the arguments have a layout or a type that the kernels do not take."""


def __dir__() -> list[str]:
    return ["NotSupported"]
