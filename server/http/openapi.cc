#include "server/http/openapi.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "common/base/engine_version.h"
#include "common/spec/field_doc.h"
#include "common/spec/field_text.h"
#include "server/http/routes.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using Json = nlohmann::ordered_json;

constexpr char kService[] = "traind.v1.TrainingService";

std::string Ref(absl::string_view name) { return absl::StrCat("#/components/schemas/", name); }

// Describes requests and replies, each message once.
class SchemaWriter {
 public:
  Json RefTo(const Descriptor& type) {
    if (schemas_.count(type.name()) == 0) {
      schemas_[type.name()] = Json();  // it may contain itself
      schemas_[type.name()] = Object(type);
    }
    return {{"$ref", Ref(type.name())}};
  }

  Json OfField(const FieldDescriptor& field) {
    if (field.is_map()) {
      return {{"type", "object"},
              {"additionalProperties", OfValue(*field.message_type()->map_value())}};
    }
    if (field.is_repeated()) return {{"type", "array"}, {"items", OfValue(field)}};
    return OfValue(field);
  }

  Json Take() {
    Json all = Json::object();
    for (auto& [name, schema] : schemas_) all[name] = std::move(schema);
    return all;
  }

 private:
  Json Object(const Descriptor& type) {
    Json properties = Json::object();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      Json schema = OfField(field);
      const bool reference = schema.contains("$ref");
      // Beside a reference, OpenAPI 3.0 reads nothing.
      if (reference) schema = {{"allOf", Json::array({schema})}};
      if (const std::string comment = CommentOf(field); !comment.empty()) {
        schema["description"] = comment;
      }
      if (field.has_presence() || field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        if (!field.is_repeated()) schema["nullable"] = true;
      }
      properties[field.name()] = std::move(schema);
    }
    Json object = {{"type", "object"}, {"properties", properties}};
    if (const std::string comment = CommentOf(type); !comment.empty()) {
      object["description"] = comment;
    }
    return object;
  }

  Json OfValue(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return {{"type", "string"}};
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return {{"type", "number"}};
      case FieldDescriptor::CPPTYPE_ENUM:
        return {{"type", "string"}, {"enum", EnumWords(*field.enum_type())}};
      case FieldDescriptor::CPPTYPE_MESSAGE:
        break;
      default: {
        const bool wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                          field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
        return {{"type", "integer"}, {"format", wide ? "int64" : "int32"}};
      }
    }
    const Descriptor& type = *field.message_type();
    if (type.full_name() == "google.protobuf.Timestamp") {
      return {{"type", "string"}, {"format", "date-time"}};
    }
    if (type.full_name() == "google.protobuf.Duration") {
      return {{"type", "string"}, {"example", "1.500s"}};
    }
    return RefTo(type);
  }

  std::map<std::string, Json> schemas_;
};

Json QueryParameter(const std::string& name, Json schema, const std::string& about) {
  Json parameter = {{"name", name}, {"in", "query"}, {"schema", std::move(schema)}};
  if (!about.empty()) parameter["description"] = about;
  return parameter;
}

void AddQuery(const Descriptor& request, const std::string& prefix,
              const std::set<std::string>& named, SchemaWriter& schemas, Json& parameters) {
  for (int i = 0; i < request.field_count(); ++i) {
    const FieldDescriptor& field = *request.field(i);
    const std::string name = prefix + field.name();
    if (named.count(name) > 0) continue;
    if (!IsScalarField(field) && !field.is_map() && !field.is_repeated()) {
      AddQuery(*field.message_type(), name + ".", named, schemas, parameters);
      continue;
    }
    parameters.push_back(
        field.is_map() ? QueryParameter(name, {{"type", "array"}, {"items", {{"type", "string"}}}},
                                        "NAME=VALUE; may be repeated")
                       : QueryParameter(name, schemas.OfField(field), CommentOf(field)));
  }
}

void AddSeriesQuery(Json& parameters) {
  const Json number = {{"type", "integer"}, {"minimum", 0}};
  parameters.push_back(
      QueryParameter("names", {{"type", "string"}}, "Names of the figures wanted: a,b"));
  parameters.push_back(QueryParameter("folds", {{"type", "string"}}, "Folds wanted: 0,1"));
  parameters.push_back(QueryParameter("max_points", number, "At most so many points of each series; 0: all"));
  parameters.push_back(QueryParameter("after_sequence", number, "Only later points"));
  parameters.push_back(QueryParameter("columns", {{"type", "boolean"}},
                                      "A list for each field instead of an object for each point"));
}

Json Content(const char* type, Json schema) { return {{type, {{"schema", std::move(schema)}}}}; }

Json BodyOf(const Route& route, const Descriptor& request, SchemaWriter& schemas) {
  if (route.kind == RouteKind::kPart) {
    return {{"required", false},
            {"content",
             Content("application/octet-stream", {{"type", "string"}, {"format", "binary"}})}};
  }
  Json schema = schemas.RefTo(request);
  if (route.kind == RouteKind::kSpec) {
    const Descriptor& spec = *request.FindFieldByName("spec")->message_type();
    schema = {{"oneOf", Json::array({schemas.RefTo(spec), schema})}};
  }
  Json content = Content("application/json", schema);
  content.update(Content("application/yaml", schema));
  return {{"required", route.kind == RouteKind::kSpec}, {"content", content}};
}

Json AnswerOf(const Route& route, const Descriptor& reply, SchemaWriter& schemas) {
  const Json text = {{"type", "string"}};
  if (route.kind == RouteKind::kFile) {
    return Content("application/octet-stream", {{"type", "string"}, {"format", "binary"}});
  }
  // The data of each event is the reply.
  const Json schema = schemas.RefTo(reply);
  if (route.kind == RouteKind::kEvents) return Content("text/event-stream", text);
  return Content("application/json", schema);
}

Json Operation(const Route& route, const MethodDescriptor& method, const std::string& id,
               SchemaWriter& schemas) {
  const Descriptor& request = *method.input_type();
  Json parameters = Json::array();
  std::vector<std::pair<std::string, std::string>> fields;
  MatchesPattern(route.pattern, route.pattern, &fields);
  std::set<std::string> named = {
      std::string(route.fixed).substr(0, std::string(route.fixed).find('='))};
  for (const auto& [name, value] : fields) {
    named.insert(name);
    parameters.push_back({{"name", name},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}},
                          {"description", CommentOf(*request.FindFieldByName(name))}});
  }
  if (route.kind == RouteKind::kPart) named.insert("content");
  if (route.kind == RouteKind::kPlain || route.kind == RouteKind::kPart) {
    AddQuery(request, "", named, schemas, parameters);
  }
  if (route.kind == RouteKind::kSeries) AddSeriesQuery(parameters);
  if (route.kind == RouteKind::kEvents) {
    parameters.push_back(
        {{"name", "Last-Event-ID"}, {"in", "header"}, {"schema", {{"type", "string"}}}});
  }
  if (request.FindFieldByName("request_id") != nullptr) {
    parameters.push_back({{"name", "Idempotency-Key"},
                          {"in", "header"},
                          {"schema", {{"type", "string"}}},
                          {"description", "The request_id."}});
  }
  Json operation = {{"operationId", id}, {"description", CommentOf(method)}};
  if (!parameters.empty()) operation["parameters"] = parameters;
  if (route.kind == RouteKind::kBody || route.kind == RouteKind::kSpec ||
      route.kind == RouteKind::kPart) {
    operation["requestBody"] = BodyOf(route, request, schemas);
  }
  operation["responses"] = {
      {"200",
       {{"description", "OK"}, {"content", AnswerOf(route, *method.output_type(), schemas)}}},
      {"default",
       {{"description", "An error"},
        {"content", Content("application/json", {{"$ref", Ref("Error")}})}}}};
  return operation;
}

Json ErrorSchema() {
  const Json text = {{"type", "string"}};
  const Json detail = {{"type", "object"},
                       {"properties",
                        {{"@type", text},
                         {"reason", text},
                         {"domain", text},
                         {"metadata", {{"type", "object"}, {"additionalProperties", text}}}}}};
  const Json status = {{"type", "object"},
                       {"properties",
                        {{"code", {{"type", "integer"}}},
                         {"status", text},
                         {"message", text},
                         {"details", {{"type", "array"}, {"items", detail}}}}}};
  return {{"type", "object"},
          {"description", "A google.rpc.Status; each detail is a google.rpc.ErrorInfo."},
          {"properties", {{"error", status}}}};
}

}  // namespace

absl::StatusOr<std::string> OpenApiJson(const google::protobuf::FileDescriptorSet& files) {
  DescriptorPool pool;
  for (const auto& file : files.file()) pool.BuildFile(file);
  const ServiceDescriptor* const service = pool.FindServiceByName(kService);
  if (service == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(kService, " is not in the files"));
  }
  SchemaWriter schemas;
  Json paths = Json::object();
  std::map<std::string, int> uses;
  for (const Route& route : Routes()) {
    const MethodDescriptor* const method = service->FindMethodByName(route.rpc);
    if (method == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("no call is named ", route.rpc));
    }
    const int use = ++uses[route.rpc];
    const std::string id = use == 1 ? route.rpc : absl::StrCat(route.rpc, use);
    paths[route.pattern][absl::AsciiStrToLower(route.method)] =
        Operation(route, *method, id, schemas);
  }
  Json components = {{"schemas", schemas.Take()}};
  components["schemas"]["Error"] = ErrorSchema();
  const Json all = {{"openapi", "3.0.3"},
                    {"info", {{"title", "traind"}, {"version", kTraindVersion}}},
                    {"paths", paths},
                    {"components", components}};
  return all.dump();
}

}  // namespace traind
