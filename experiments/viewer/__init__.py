"""Viewer: runs as pictures. Python packs them, and canvases in JavaScript draw them in any page."""
