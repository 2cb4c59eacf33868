"""Runs as pictures: Python packs them, and JavaScript canvases draw them in any page."""
