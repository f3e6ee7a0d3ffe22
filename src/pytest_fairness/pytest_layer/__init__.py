"""What pytest sees: options, collection, fixtures, the session and its reports."""
