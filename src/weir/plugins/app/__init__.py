"""Results on a local web page. Begin with `pages.py`, the list of URLs.

`server.py` serves views as HTML and as JSON. Each `*_page.py` has a view, which returns the content of its
page for a template in `templates/`. `static/htmx.min.js` is htmx 4.0.1 of the npm package htmx.org, under the
licence beside it.
"""
