"""The kernel sources that version 0.1.0 had before they stood in rooms of their own."""

SOURCES = (
    ('byte_copying.py', '12c43ec94765e437aae46d4c505f7a5b77f306db548ce458c473bdcd2782a775'),
    ('compilation.py', '673269d91d204bf52b4719112bb7e67e4387b800346fe0e353d1a3f67af07ce7'),
    ('corpus/line_kernels.py', '3c49142120182b5f07d7ad13bfad4275abac48bf07ea249f40264c689f3e9a2a'),
    ('counts_text.py', '3b799413afb7ccd5565d73e958c379f58124e08afeace60afb9916217ec68dc2'),
    ('intrinsics/atomics.py', '323d9a18a70d4c3e6a85930455fc0dc458f0bc77dbaea0276adfd91d1f4a5ea4'),
    ('intrinsics/chunk_bits.py', '272d16d329a15c30fea3213d975d1315aa4ee9a58612bec6de37bf3749a8c5cc'),
    ('intrinsics/word_loads.py', '68311b811bd173293f53704b13735184f1e21d1228af538ebe0758ca05df3f66'),
    ('pretokenization.py', '9dca8c3c1bce3f7f264c12705ff8c2a471d9b2bf7c248e86bad7b8825df5d8a3'),
    ('records/framing_kernels.py', '8197feb724e80d00b0bf77643d6a652ac60a186cd8e3eff22bc30bd46324fef4'),
    ('records/run_kernels.py', '65ddf19891b7dc902d4702c1444dc6b43f63b17730f79cc10b12f23968ffd5b1'),
    ('row_counting.py', '4be841d6d8e4061d7f9204f561b181a59f5060cabf0cbe0f9ad912d79a8508c3'),
    ('subword/cutting_kernels.py', '6769c5f4c65b70197fc88d8a9ef8a55e78cb04c0ac04634420a4c73517dccbfb'),
    ('subword/encoding_kernels.py', 'cb4f0072c7f8b712c8320ed896409fb350301f7621fe18c23ce9570a8f9a845b'),
    ('subword/escaped_text.py', 'b9e2fafbfe314eeab1cf8f3dcfb52f0dd7e14ce5a711508b7b43c7197db9c635'),
    ('subword/group_tree.py', '869b50844774965374228eaf446990ef8e153519151229b6481e985ff1358773'),
    ('subword/learner.py', '30ed9f19f1f58f676ea7dd70fc03d325d516a2201b318c8ce94e0adc184b4588'),
    ('subword/list_parting.py', '2437253d2be64ea61de7d382ffbf08d6bd95213154beefadcfc7f02f1c93f2d3'),
    ('subword/memo_kernels.py', '8ad805acdb97c584d5637a00eb6348a393b67f22e81115b4ac2e29760df5b5d9'),
    ('subword/pair_planting.py', '1907eb4d21ae0808df115f9e16417f04dc5e4df9ac09a8212ef01e286e755b08'),
    ('subword/pair_sorting.py', 'c2a45a0c13c621dd7ecdd06aa9b8eca7a406d7e2c9408f947b1c196513ff4204'),
    ('subword/prefix_groups.py', '42ec6a529b75b6d9d641d7728d6311ce4bbe01cbce08d04cbbb291cf6ea7230f'),
    ('subword/run_planting.py', 'b9475020c6b47ded2dec6f618c7b958fe82b2e40abd949a6244bb42f4b029b03'),
    ('subword/subtokens.py', '9aa6b6f7826d22ca54cd65139b0bcb866362e933c1ff4c8981907f0b5a790e22'),
    ('subword/suffix_listing.py', '392541e65e430ddad43ac65d15748287cfc473e8383882fac1537931d8cb9969'),
    ('subword/suffix_packing.py', '4d2495a3a50eaa04b4cc48c7e3d9eb93ef37d326d81c51ab3ab9a28e6dade1f6'),
    ('subword/suffix_table_kernels.py', 'c2503bae1eb084f090c3289a45d98600f647d7282c64f405ccfe0a3b75d122c6'),
    ('subword/suffixes.py', '0866b8cd5e9cf2304ab2d4dbb06b07f0c78cbdcc544b881f6f00238c1d5aabaf'),
    ('subword/tree.py', '738ca5cdaf27bf5e7549c18ff993154b7a95ea0c05bb9c6bd8bd1508e17cc55a'),
    ('subword/trie_kernels.py', '19bc2bde722d4623952044d0332e2c5fc9c520393a99b882fd9c6abb28d57feb'),
    ('subword/whole_tree.py', '153abf0d27330a4c60b48ce351da5622084cc7fa125bf94b4588fc40574488b4'),
    ('token_hashing.py', '9f039495b09379195be55d32892dcec1484bed896b475f879dcebc15b3337fca'),
    ('token_packing.py', '7a52adfa49a7addaaf19357b9c45cfc77612b063747352f0b5d8dd53373ca0bf'),
    ('token_scanning.py', '656c53c23bb8481beaae5f535a11f7d58411f5da921c2edfa303cd5a2cb4fb2b'),
)
"""For each, in order, its name below `tokcore` and its SHA-256, at 6b30307."""

EDITED = {
    # The cache folder has to be the user's alone.
    'compilation.py': '10231e7474f14145b50e396b3b9078a9ba2e87e3606580e3b63e3339a3d46723',
}
"""The SHA-256 of what was edited since then without a change to what is computed."""
