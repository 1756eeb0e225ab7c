"""Made-up texts with labels, texts that are JSON or nearly, and the schema of these."""
import json, random
random.seed(3)
words = {"heart": "pulse beat rest walk tablet".split(), "skin": "rash cream sun itch bath".split()}
for name, n in ("made", 40), ("real", 40), ("train", 40):
    with open(name + ".jsonl", "w") as f:
        for i in range(n):
            label = ("heart", "skin")[i % 2]
            text = " ".join(random.choice(words[label] + ["and", "then"]) for _ in range(12))
            f.write(json.dumps({"text": text, "dept": label}) + "\n")

random.seed(5)
for name, n, share in ("json", 50, .7), ("json_real", 70, .4):
    with open(name + ".jsonl", "w") as f:
        for i in range(n):
            o = {"dept": "heart" if random.random() < share else "<b>", "age": random.randint(1, 9)}
            if random.random() < .3:
                del o["age"]
            text = json.dumps(o, separators=(",", ":")) if random.random() < .9 else "{ no"
            f.write(json.dumps({"text": text}) + "\n")
json.dump({"type": "object", "properties": {"dept": {"enum": ["heart", "<b>"]},
           "age": {"type": "integer"}}, "required": ["dept", "age"],
           "additionalProperties": False}, open("schema.json", "w"))
