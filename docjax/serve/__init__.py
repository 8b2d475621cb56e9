"""The HTTP server of a model: needs the packages of docjax[serve]."""
