r"""The block engine: rows of text to rows of ids, for any scheme.

    TextRows ─ scan_tokens ─▶ ScannedTokens ─ look_up ─▶ ids of those in the TokenCache
                                  │ MissedTokens
                                  ▼
                            segment_tokens ─▶ ids, which the cache remembers
    IdRows: before each row and behind it its Surround, in between the ids of its tokens

How the engine meets a scheme: `scan_tokens` and `segment_tokens` are families
(`compiled.kernel_families`) whose body is chosen by the type of a state, while numba compiles. So a
block is one call of one kernel for each scheme, and the token cache, the order of passes and the room
for ids are written once. The other way, some kernels called for each pass of a thousand tokens from
Python, was measured too: the calls take the interpreter's lock a thousand times a block.
"""
