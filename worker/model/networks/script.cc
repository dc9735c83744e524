#include "worker/model/networks/script.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "worker/device/guard.h"
#include "worker/model/networks/model.h"

namespace traind {
namespace {

namespace jit = torch::jit;

// A place in the module's objects that holds a parameter or a buffer.
struct Slot {
  c10::intrusive_ptr<c10::ivalue::Object> object;
  size_t index = 0;
  size_t weight = 0;  // index of the weight
};

absl::Status Wrong(const plain::ScriptSpec& spec, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("model.script: ", spec.file, ": ", what));
}

// A message of torch and its place. It ends with a stack trace; what went wrong within a
// module stands before that, behind the module's lines.
struct TorchError {
  std::string what, where;
};

TorchError ReadError(absl::string_view text) {
  constexpr size_t kMost = 400;
  constexpr absl::string_view kWhat = "\nRuntimeError: ";
  const absl::string_view lines = text.substr(0, text.find("\nException raised"));
  const size_t at = lines.rfind(kWhat);
  if (at == lines.npos) return {std::string(lines.substr(0, kMost)), ""};
  const absl::string_view what = lines.substr(at + kWhat.size(), kMost);
  return {std::string(absl::StripAsciiWhitespace(what)),
          std::string(lines.substr(0, std::min(kMost, at)))};
}

std::string WidthsText(const ModelShape& shape) {
  return absl::StrCat("; numeric has ", shape.numeric, " columns and codes has ",
                      shape.cardinalities.size(), "\n");
}

// torch's own operators reach files only through these; operators of other
// libraries may do anything.
bool MayRun(const std::string& kind) {
  if (kind == "aten::save" || kind == "aten::from_file" || kind == "aten::_save") return false;
  return absl::StartsWith(kind, "aten::") || absl::StartsWith(kind, "prim::") ||
         absl::StartsWith(kind, "prims::");
}

const jit::Node* Forbidden(c10::ArrayRef<const jit::Block*> blocks) {
  for (const jit::Block* block : blocks) {
    for (const jit::Node* node : block->nodes()) {
      if (!MayRun(node->kind().toQualString())) return node;
      const auto inner = node->blocks();
      const std::vector<const jit::Block*> within(inner.begin(), inner.end());
      if (const jit::Node* found = Forbidden(within)) return found;
    }
  }
  return nullptr;
}

absl::Status CheckOperators(const plain::ScriptSpec& spec, const jit::Module& module) {
  for (const jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    const auto* graph_function = dynamic_cast<const jit::GraphFunction*>(function);
    if (graph_function == nullptr) continue;
    const jit::Block* block = graph_function->graph()->block();
    if (const jit::Node* node = Forbidden({block})) {
      return Wrong(
          spec, absl::StrCat("uses ", node->kind().toQualString(), ", which no network may use"));
    }
  }
  return absl::OkStatus();
}

class Script final : public Model {
 public:
  explicit Script(jit::Module module) : module_(std::move(module)) {}

  static absl::StatusOr<std::unique_ptr<Script>> Create(const plain::ScriptSpec& spec,
                                                        const ModelShape& shape,
                                                        Parameters& parameters);

  // A user's network may compute on the host, which a recording would not repeat.
  bool MayBeRecorded() const override { return false; }

  void Start(const Parameters& parameters) const override {
    const at::NoGradGuard no_gradients;
    for (const auto& [weight, value] : initial_) parameters[weight].copy_(value);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    for (const Slot& slot : slots_) slot.object->setSlot(slot.index, weights[slot.weight]);
    if (training != training_) {
      module_.train(training);
      training_ = training;
    }
    if (training) {
      at::Generator generator = at::globalContext().defaultGenerator(inputs.numeric.device());
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_current_seed(inputs.dropout_seed);
    }
    std::vector<c10::IValue> arguments;
    for (const bool codes : takes_codes_) {
      arguments.emplace_back(codes ? inputs.codes.to(at::kLong) : inputs.numeric);
    }
    return module_.forward(std::move(arguments)).toTensor();
  }

 private:
  absl::Status ReadSignature(const plain::ScriptSpec& spec);
  absl::Status DeclareTensors(const plain::ScriptSpec& spec, Parameters& parameters);

  mutable jit::Module module_;
  mutable bool training_ = true;
  std::vector<bool> takes_codes_;  // per argument: true for codes, false for numeric
  std::vector<Slot> slots_;
  std::vector<std::pair<size_t, at::Tensor>> initial_;  // by index of the weight
};

absl::Status Script::ReadSignature(const plain::ScriptSpec& spec) {
  const auto method = module_.find_method("forward");
  if (!method.has_value()) return Wrong(spec, "has no forward method");
  const c10::FunctionSchema& schema = method->function().getSchema();
  for (size_t i = 1; i < schema.arguments().size(); ++i) {  // argument 0 is self
    const std::string& name = schema.arguments()[i].name();
    if (name != "numeric" && name != "codes") {
      return Wrong(spec, absl::StrCat("forward takes '", name,
                                      "'; its arguments must be named numeric or codes"));
    }
    takes_codes_.push_back(name == "codes");
  }
  if (takes_codes_.empty()) return Wrong(spec, "forward takes neither numeric nor codes");
  if (schema.returns().size() != 1 ||
      schema.returns()[0].type()->kind() != c10::TypeKind::TensorType) {
    return Wrong(spec, "forward does not return one tensor");
  }
  return absl::OkStatus();
}

// A tensor that stands in several places is one parameter.
absl::Status Script::DeclareTensors(const plain::ScriptSpec& spec, Parameters& parameters) {
  std::map<const void*, size_t> known;
  for (const auto& submodule : module_.named_modules()) {
    const auto object = submodule.value._ivalue();
    const auto type = submodule.value.type();
    for (size_t i = 0; i < type->numAttributes(); ++i) {
      if (!type->is_parameter(i) && !type->is_buffer(i)) continue;
      const c10::IValue value = object->getSlot(i);
      if (!value.isTensor()) continue;  // None, such as a missing bias
      const at::Tensor& tensor = value.toTensor();
      const std::string name = absl::StrCat(
          "module.", submodule.name, submodule.name.empty() ? "" : ".", type->getAttributeName(i));
      if (tensor.scalar_type() != at::kFloat) {
        if (type->is_buffer(i)) continue;
        return Wrong(spec,
                     absl::StrCat("parameter ", name, " is ", c10::toString(tensor.scalar_type()),
                                  "; only float32 is trained"));
      }
      const auto [entry, added] = known.try_emplace(tensor.unsafeGetTensorImpl(), 0);
      if (added) {
        const Initial none{Initial::Kind::kConstant, 0, -1};
        entry->second = type->is_parameter(i)
                            ? parameters.Declare(name, tensor.sizes().vec(), none)
                            : parameters.DeclareBuffer(name, tensor.sizes().vec(), 0);
        initial_.emplace_back(entry->second, tensor.detach().clone());
      }
      slots_.push_back({object, i, entry->second});
    }
  }
  if (initial_.empty()) return Wrong(spec, "has no parameters");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Script>> Script::Create(const plain::ScriptSpec& spec,
                                                       const ModelShape& shape,
                                                       Parameters& parameters) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(spec.file));
  if (Sha256Hex(bytes) != spec.sha256) {
    return Wrong(spec, "is not the file that was submitted: its digest differs");
  }
  // The module is interpreted operator by operator: compiling it anew for each shape costs more
  // time than it saves in most trainings of a fold.
  jit::setGraphExecutorOptimize(false);
  jit::Module module;
  try {
    std::istringstream stream(bytes);
    module = jit::load(stream, c10::Device(c10::kCPU));
  } catch (const std::exception& error) {
    const std::string what = ReadError(error.what()).what;
    return Wrong(spec,
                 absl::StrContains(what, "constants.pkl")
                     ? "is not a TorchScript module, but a file of torch.save; write one with "
                       "torch.jit.script(model).save(FILE)"
                     : absl::StrCat("is not a TorchScript module: ", what));
  }
  RETURN_IF_ERROR(CheckOperators(spec, module));
  auto script = std::make_unique<Script>(std::move(module));
  RETURN_IF_ERROR(script->ReadSignature(spec));
  const bool wants_codes = absl::c_linear_search(script->takes_codes_, true);
  if (wants_codes && shape.cardinalities.empty()) {
    return Wrong(spec, "forward takes codes, but the data have no categorical column");
  }
  RETURN_IF_ERROR(script->DeclareTensors(spec, parameters));
  return script;
}

Inputs MadeUp(const ModelShape& shape, int64_t rows) {
  const auto sized = [&](int64_t width) {
    return shape.window == 1 ? std::vector<int64_t>{rows, width}
                             : std::vector<int64_t>{rows, shape.window, width};
  };
  Inputs inputs;
  inputs.numeric = at::randn(sized(shape.numeric));
  const auto columns = static_cast<int64_t>(shape.cardinalities.size());
  inputs.codes = at::zeros(sized(columns), at::kInt);
  for (int64_t k = 0; k < columns; ++k) {
    // The largest code, for which an embedding that is too small has no row.
    inputs.codes.select(-1, k).fill_(shape.cardinalities[static_cast<size_t>(k)] - 1);
  }
  return inputs;
}

absl::Status CheckOutput(const plain::ScriptSpec& spec, const at::Tensor& output, int64_t rows,
                         int64_t outputs) {
  if (output.dim() != 2 || output.size(0) != rows || output.size(1) != outputs) {
    return Wrong(spec, absl::StrCat("forward of ", rows, " rows gives [",
                                    absl::StrJoin(output.sizes(), ", "), "], not [", rows, ", ",
                                    outputs, "]"));
  }
  if (!at::isFloatingType(output.scalar_type())) {
    return Wrong(spec, absl::StrCat("forward must return floating-point numbers, not ",
                                    c10::toString(output.scalar_type())));
  }
  if (!output.isfinite().all().item<bool>()) {
    return Wrong(spec, "forward returns values that are not finite for ordinary inputs");
  }
  return absl::OkStatus();
}

absl::Status Try(const plain::ScriptSpec& spec, const ModelShape& shape, Parameters& parameters) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Script> script, Script::Create(spec, shape, parameters));
  parameters.Allocate(c10::kCPU);
  script->Start(parameters);
  for (const int64_t rows : {7, 2}) {
    const at::Tensor output =
        script->Forward(parameters.tensors(), MadeUp(shape, rows), /*training=*/true);
    RETURN_IF_ERROR(CheckOutput(spec, output, rows, shape.outputs));
    if (!output.requires_grad()) return Wrong(spec, "the output depends on no parameter");
    output.sum().backward();
  }
  const at::NoGradGuard no_gradients;
  for (const int64_t rows : {5, 1}) {
    const at::Tensor output =
        script->Forward(parameters.tensors(), MadeUp(shape, rows), /*training=*/false);
    RETURN_IF_ERROR(CheckOutput(spec, output, rows, shape.outputs));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateScript(const ModelSpec& spec, const ModelShape& shape,
                                                    Parameters& parameters) {
  ASSIGN_OR_RETURN(std::unique_ptr<Script> script, Script::Create(*spec.script, shape, parameters));
  return script;
}

absl::StatusOr<ScriptReport> TryScript(const plain::ScriptSpec& spec, const ModelShape& shape) {
  Parameters parameters;
  try {
    RETURN_IF_ERROR(Try(spec, shape, parameters));
  } catch (const std::exception& error) {
    const auto [what, where] = ReadError(error.what());
    return Wrong(spec, absl::StrCat("does not run: ", what, WidthsText(shape), where));
  }
  return ScriptReport{TotalSize(parameters.layout())};
}

}  // namespace traind
