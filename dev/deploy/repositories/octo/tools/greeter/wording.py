def sentence(greeting: str, name: str) -> str:
    return f"{greeting}, {name}!"
