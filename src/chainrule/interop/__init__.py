"""Meeting other libraries, files and settings."""
