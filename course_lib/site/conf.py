"""The settings of the site, as Sphinx reads them. What depends on the machine is set by `course_lib.site.build`."""

from course_lib.site.sources import as_rst

project = html_title = "Deep learning, hands on"
language = "en"
smartquotes = False  # text stands as it was written, also where it says --workers
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]

highlight_language = "none"  # but where a block says otherwise

html_theme = "furo"
_COLOURS = ("color-brand-primary", "color-brand-content", "color-code-background", "color-output")
html_theme_options = {
    "light_css_variables": dict(zip(_COLOURS, ("#00588a", "#00588a", "#f2f4f6", "#000"), strict=True)),
    "dark_css_variables": dict(zip(_COLOURS, ("#7cc4f0", "#7cc4f0", "#232527", "#fff"), strict=True)),
}
html_favicon = "static/favicon.svg"
html_css_files = ["course.css"]
html_js_files = ["course.js"]
html_copy_source = False  # a lesson's source holds the notes of its lecture
html_show_copyright = False
html_permalinks = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

nb_execution_mode = "off"
nb_ipywidgets_js = {}  # from a network, and no stored output needs it
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
myst_update_mathjax = False
suppress_warnings = ["myst.header"]  # a lesson may leave out a level

mathjax_path = "tex-svg-full.js"
mathjax3_config = {  # the formulas of stored outputs still have their dollars
    "tex": {"inlineMath": [["\\(", "\\)"], ["$", "$"]], "displayMath": [["\\[", "\\]"], ["$$", "$$"]]},
    "options": {"enableMenu": False, "ignoreHtmlClass": "sidebar-tree|highlight"},
}

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"ignore-module-all": True}
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"


def setup(app):
    """Let docstrings be read as they are written here."""
    app.connect("autodoc-process-docstring", lambda app, what, name, thing, options, lines: _rewrite(lines))


def _rewrite(lines):
    lines[:] = as_rst(lines)
