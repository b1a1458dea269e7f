"""How Sphinx builds the site; the sources are put together by :mod:`docs.site.build`."""

from __future__ import annotations

from pathlib import Path

import chainrule

project = "chainrule"
author = "the chainrule developers"
copyright = author
version = release = chainrule.__version__
extensions = ["myst_parser", "sphinx_copybutton", "docs.site.mathml"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"chainrule {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style, pygments_dark_style = "default", "github-dark"
templates_path = ["_templates"]
add_module_names = False
python_display_short_literal_types = True
maximum_signature_line_length = 100
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
toc_object_entries_show_parents = "hide"
nitpicky = False
# Pages that are copied as they are.
suppress_warnings: list[str] = []
