"""Results on a local web page. Begin with `pages.py`, the list of URLs.

`static/htmx.min.js` is htmx 4.0.1 of the npm package htmx.org, under the licence beside it.
"""
