"""The studio: a local page that shows what tokenizers do; `server.py` serves it on loopback."""
