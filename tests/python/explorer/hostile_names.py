"""Names that a page must show and not run."""

HOSTILE = (
    "<script>window.harmed = 1</script>", '"><img src=x onerror="window.harmed=1">', "</script><svg onload=harmed=1>",
    "tab\tand\x1b[31mescape", "\u202eright to left", "&lt;b&gt;", "@data@", "${harmed=1}",
)  # fmt: skip
