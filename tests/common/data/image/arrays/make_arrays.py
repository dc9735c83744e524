#!/usr/bin/env python3
"""Makes the arrays that image_array_test and image_input_test read, in the folder given (needs
numpy): images in many forms, and as X.bytes.npy what they are as bytes, [N, H, W, C], by numpy.

    python3 make_arrays.py .
"""
import os
import sys

import numpy as np


def to_bytes(x, black, white):
    x = np.clip((x.astype(np.float64) - black) * (255 / (white - black)), 0, 255)
    return np.floor(x + 0.5).astype(np.uint8)


def main(folder):
    r = np.random.default_rng(11)
    base = r.integers(0, 256, (6, 5, 7, 3), dtype=np.uint8)

    def save(name, array):
        np.save(os.path.join(folder, name + ".npy"), array)

    def both(name, array, black, white, channels_last=None):
        save(name, array)
        last = array if channels_last is None else channels_last
        save(name + ".bytes", np.ascontiguousarray(to_bytes(last, black, white)))

    both("colour_u1", base, 0, 255)
    both("first_u1", np.ascontiguousarray(base.transpose(0, 3, 1, 2)), 0, 255, base)
    both("fortran_u1", np.asfortranarray(base), 0, 255)
    grey = base[..., 0]
    both("grey_u1", grey, 0, 255, grey[..., None])
    both("grey_b1", grey > 99, 0, 1, (grey > 99)[..., None])
    words = base.astype("<u2") * 256 + base[::-1]
    both("colour_u2", words, 0, 65535)
    unit = (base.astype("<f4") + r.random(base.shape, dtype=np.float32) - 0.5) / 255
    both("colour_f4", unit, 0, 1)
    both("grey_f8", unit[..., 1].astype("<f8"), 0, 1, unit[..., 1:2].astype("<f8"))
    both("grey_i8", grey.astype("<i8"), 0, 255, grey[..., None])
    ct = base[..., 0].astype("<i2") * 16 - 1024
    save("ct_i2", ct)  # with black -1000, white 400
    save("ct_i2.bytes", to_bytes(ct[..., None], -1000, 400))
    nan = unit.copy()
    nan[4, 2, 3, 1] = np.nan
    save("nan_f4", nan)
    save("beyond_f4", unit * 255)
    save("dim_u2", words // 64)
    save("two_axes", base[:, :3, :, :])
    save("no_axis", np.zeros((2, 4, 5, 6), "u1"))
    save("flat", grey.reshape(6, 35))
    save("half", unit.astype("<f2"))
    save("objects", np.array([None, None, None]))
    save("big_endian", base.astype(">u2"))
    labels = np.array([3, 1, 4, 1, 5, 9])
    save("labels", labels)
    save("labels_column", labels[:, None])
    save("labels_hot", np.eye(10)[labels])
    save("labels_short", labels[:5])
    save("labels_f4", labels.astype("<f4") / 4)
    np.savez(os.path.join(folder, "mnist.npz"), x_train=base, y_train=labels, x_test=base[:2], y_test=labels[:2])
    np.savez_compressed(os.path.join(folder, "medmnist.npz"), train_images=base, train_labels=labels[:, None],
                        test_images=base[:2])
    with open(os.path.join(folder, "colour_u1.npy"), "rb") as f:
        whole = f.read()
    with open(os.path.join(folder, "cut.npy"), "wb") as f:
        f.write(whole[:-10])


if __name__ == "__main__":
    main(sys.argv[1])
