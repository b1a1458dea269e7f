"""The version, in one place: packaging, ``chainrule.__version__`` and the site read it from here."""

__version__ = "0.1.0"
