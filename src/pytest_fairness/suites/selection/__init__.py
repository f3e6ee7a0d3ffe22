"""The three-arm selection benchmark: choices between equal candidates, raw and scrubbed."""
