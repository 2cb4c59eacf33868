"""The browser and Streamlit: what the workbench adds to a page, and all that leans on Streamlit's inner life."""
