"""The page of the demo: the answers of the pipelines as charts that move, in a browser on this machine.

| file        | holds                                                                                    |
|-------------|------------------------------------------------------------------------------------------|
| `charts`    | an answer as a chart: plain data for the library that draws                              |
| `snapshot`  | all that the page shows at one moment                                                    |
| `server`    | serves the page, its data and the library, on loopback                                   |
| `page.html` | the page; it asks for data every two seconds                                             |

What draws is Plotly's library for browsers, as it comes with the package `plotly`: nothing is fetched from elsewhere.
"""
