from pathlib import Path

Path("judged.csv").write_text(
    "query_id,doc_id,grade\nboots,p1,2\nboots,p7,1\nboots,p3,0\nred dress,p4,1\nusb c,p9,2\nusb c,p5,1\n"
)
Path("before.csv").write_text(
    "query_id,doc_id,score\nboots,p3,7.1\nboots,p1,6.0\nred dress,p4,3.2\nusb c,p2,9.0\nusb c,p9,8.5\n"
)
Path("after.csv").write_text(
    "query_id,doc_id,score\nboots,p1,7.3\nboots,p7,6.1\nred dress,p8,3.3\nred dress,p4,3.1\nusb c,p9,9.1\n"
)
