"""The cluster: its image, the controller that changes it, and the registries behind both.

    store (coordination)  ->  MetadataCache  ->  ClusterImage  ->  everything that needs to know
            ^                                        |
            +---- transaction ---- Controller  <-----+   decide, then apply

Nothing but the store holds state: an image is what was read, a decision is a pure function of an image and a
request, and the image changes because the store did.
"""
