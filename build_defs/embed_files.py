"""Writes a C++ file that holds files, gzipped: embed_files.py OUTPUT FOLDER FILE...

A file below FOLDER has the path /assets/ and that below FOLDER in the program, another one /NAME. The table is server/http/assets.h's.
"""
import gzip
import hashlib
import os
import sys


def literal(data):
    lines = []
    for i in range(0, len(data), 24):
        lines.append(",".join(str(b) for b in data[i:i + 24]))
    return ",\n".join(lines)


def main(output, folder, *files):
    arrays, rows = [], []
    for i, path in enumerate(sorted(files)):
        with open(path, "rb") as f:
            plain = f.read()
        packed = gzip.compress(plain, 9, mtime=0)
        arrays.append(f"const unsigned char kFile{i}[] = {{\n{literal(packed)}}};\n")
        inside = path.startswith(folder + "/")
        name = "/assets/" + os.path.relpath(path, folder) if inside else "/" + os.path.basename(path)
        digest = hashlib.sha256(plain).hexdigest()
        rows.append(f'    {{"{name}", kFile{i}, sizeof kFile{i}, "{digest}"}},\n')
    with open(output, "w") as f:
        f.write('#include "server/http/assets.h"\n\nnamespace traind {\nnamespace {\n\n')
        f.write("\n".join(arrays))
        f.write("\n}  // namespace\n\nconst EmbeddedFile kEmbeddedFiles[] = {\n")
        f.write("".join(rows))
        f.write(f"}};\nconst size_t kEmbeddedFileCount = {len(rows)};\n\n}}  // namespace traind\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
