"""Results on a local web page; begin with `pages.py`, the list of URLs.

`static/htmx.min.js` is htmx 4.0.1 (npm package htmx.org), under the licence beside it.
"""
