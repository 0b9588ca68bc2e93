"""Greets whoever settings.json names."""

import json
import pathlib

from wording import sentence

settings = json.loads((pathlib.Path(__file__).parent / "settings.json").read_text())
print(sentence(settings["greeting"], settings["name"]))
