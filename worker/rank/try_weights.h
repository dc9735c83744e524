// trainrank's ways to be called about weights from a file: each does its work, and ends.
#pragma once

namespace traind {

// trainrank try-weights STATE JOB TABLE SPEC_FILE
// Takes the weights that the resolved spec in SPEC_FILE wants (model.pretrained) as the first
// fold would. Writes one line to standard output: {"report": "..."} or {"error": "..."}.
int TryWeightsMain(int argc, char** argv);

// trainrank list-parameters MODEL [NAME=VALUE...]
// Writes the name and shape of each of a model's parameters to standard output, a line each.
// MODEL: JSON as in a spec, such as {"text": {"width": 64, "layers": 2}}. NAME: outputs,
// numeric, window, vocabulary, max_tokens (numbers), cardinalities, image (numbers with
// commas): what goes in and comes out, as worker/model/networks/model_spec.h says.
int ListParametersMain(int argc, char** argv);

}  // namespace traind
