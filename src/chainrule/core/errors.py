"""Errors that say what happened, to which op, and what to write instead; and the word for a derivative that is zero."""

from __future__ import annotations

from typing import Any


class _Zero:
    """The derivative exists and is zero."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO: Any = _Zero()
# What NumPy raises for 0/0 or an overflow where the caller has asked for that (``np.errstate(all="raise")``, ``-W error``): in an op these
# are values. To wait for it costs nothing; see docs/decisions/002.
FLOATING = (FloatingPointError, RuntimeWarning)


def see(title: str) -> str:
    """The end of a message that needs more than two lines: the heading in docs/howto/errors.md that says more."""
    return f'\n(More under "{title}", on the page of errors in the documentation.)'


class ChainruleError(RuntimeError):
    """Base of chainrule's own errors; a RuntimeError, as PyTorch raises."""


class EscapedError(ChainruleError):
    """A value was used after the transform that made it had ended."""


class MissingRuleError(ChainruleError, NotImplementedError):
    """An op has no rule for what a transform asks of it."""


class Unfit(ChainruleError):
    """A recorded function met elements that it was not made for: it has to run without jit."""


class GraphFreedError(ChainruleError):
    """Backward went a second time through a graph whose saved values were freed."""


def escaped(kind: str, op: str) -> EscapedError:
    return EscapedError(
        f"{op}: this tensor belongs to a {kind} transform that has already returned. It leaked out of the function, "
        f"for example through a global, a closure or an attribute. Return it from the transformed function instead "
        f"(with has_aux=True if it is not to be differentiated)." + see("A value outlived its transform")
    )


def missing(op: str, what: str, where: str = "") -> MissingRuleError:
    return MissingRuleError(
        f"{op} has no {what}. Add one where the op is declared{' (' + where + ')' if where else ''}, "
        f"or wrap your own with @chainrule.custom_op." + see("The rule is missing")
    )
