"""What `as2d_cli.bench.html` is made of: reading the document, scales, charts, the template."""
