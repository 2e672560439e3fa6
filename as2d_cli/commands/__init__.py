"""One thin module a command: options -> request -> task -> renderer.

Each module has ``register(app: typer.Typer) -> None`` and imports nothing heavier than typer at
its top, because ``as2d --help`` imports all of them. A command gets the `Environment` as
``ctx.obj`` (``typer.Context``) and reports trouble by raising `As2dError`; it returns nothing, or
raises ``typer.Exit(status)`` when it has already said what went wrong.
"""
