"""Pictures and files of runs: Plotly figures, HTML reports, charts of characters, the browser's timeline."""
