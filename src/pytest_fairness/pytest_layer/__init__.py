"""Parts of the package that pytest sees: options, collection, fixtures, the session and its
reports.
"""
