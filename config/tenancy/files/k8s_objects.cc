#include "config/tenancy/files/k8s_objects.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/nearest.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/read_parts.h"

namespace gantry::tenancy {
namespace {

// Tools add annotations to objects; they contain nothing about the tenant.
Result<void> read_annotations(const Value& value, const Meta& meta, Translation& into) {
  static constexpr std::array<std::string_view, 6> kTools{
      "kubectl.kubernetes.io/", "argocd.argoproj.io/",   "helm.sh/",
      "meta.helm.sh/",          "config.kubernetes.io/", "kustomize.toolkit.fluxcd.io/"};
  ASSIGN(entries, value.entries());
  const bool others = std::any_of(entries->begin(), entries->end(), [](const Value::Entry& e) {
    return std::none_of(kTools.begin(), kTools.end(),
                        [&](std::string_view tool) { return e.key.starts_with(tool); });
  });
  if (others) into.note(meta, value, "annotations are not kept; labels of a Namespace are");
  return {};
}

}  // namespace

Keys& Keys::on(std::string_view key, Handler handler) {
  known_[key] = {std::move(handler), {}, false};
  return *this;
}

Keys& Keys::required(std::string_view key, Handler handler) {
  known_[key] = {std::move(handler), {}, true};
  return *this;
}

Keys& Keys::note(std::string_view key, std::string_view why) {
  known_[key] = {nullptr, why, false};
  return *this;
}

Keys& Keys::text(std::string_view key, std::string& out) {
  return on(key, [&out](const Value& value) -> Result<void> {
    ASSIGN(text, value.text());
    out = std::move(*text);
    return {};
  });
}

Result<void> Keys::run() {
  ASSIGN(entries, map_.entries());
  for (const Value::Entry& entry : *entries) {
    const auto known = known_.find(entry.key);
    if (known == known_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, what] : known_) names.push_back(name);
      return entry.wrong(map_.path(), fmt::format("unknown field `{}`{}", entry.key,
                                                  did_you_mean(entry.key, names)));
    }
    if (entry.value.is_null()) continue;  // null means that the key is not set
    known->second.required = false;
    if (known->second.handler) {
      if (auto done = known->second.handler(entry.value); !done) return done;
    } else if (!known->second.why.empty()) {
      into_.note(meta_, entry.value, std::string(known->second.why));
    }
  }
  for (const auto& [name, known] : known_)
    if (known.required) return map_.wrong(fmt::format("`{}` is missing", name));
  return {};
}

Result<void> read_metadata(const Value& value, Meta& meta, Translation& into) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries)  // read first, because notes name the object
    if (entry.value.is_scalar() && (entry.key == "name" || entry.key == "namespace"))
      (entry.key == "name" ? meta.name : meta.name_space) = *entry.value.text();
  return Keys(value, into, meta)
      .text("name", meta.name)
      .text("namespace", meta.name_space)
      .on("labels", [&](const Value& v) { return read_labels(v, meta.labels); })
      .on("annotations", [&](const Value& v) { return read_annotations(v, meta, into); })
      .note("creationTimestamp", "")
      .note("deletionTimestamp", "")
      .note("finalizers", "")
      .note("generateName", "")
      .note("generation", "")
      .note("managedFields", "")
      .note("ownerReferences", "")
      .note("resourceVersion", "")
      .note("selfLink", "")
      .note("uid", "")
      .run();
}

Keys object_keys(const Value& root, Translation& into, const Meta& meta) {
  Keys keys(root, into, meta);
  keys.note("apiVersion", "").note("kind", "").note("metadata", "").note("status", "");
  return keys;
}

std::optional<Resource> resource_of_kubernetes(std::string_view name) {
  if (name == "cpu") return Resource::cpu;
  if (name == "memory") return Resource::memory;
  if (name == "ephemeral-storage") return Resource::scratch;
  if (name == "nvidia.com/gpu" || name == "amd.com/gpu") return Resource::gpu;
  return std::nullopt;
}

Result<std::int64_t> read_quantity(const Value& value, Resource resource) {
  ASSIGN(text, value.text());
  const auto amount = amount_of_quantity(resource, *text);
  if (!amount) return value.wrong(amount.error());
  return *amount;
}

Result<void> expect_choice(const Value& value, std::span<const std::string_view> choices,
                           std::string& out) {
  ASSIGN(text, value.text());
  std::string all;
  for (const std::string_view choice : choices) {
    if (*text == choice) {
      out = std::move(*text);
      return {};
    }
    all += fmt::format("{}{}", all.empty() ? "" : ", ", choice);
  }
  return value.wrong(
      fmt::format("\"{}\" is none of {}{}", *text, all, did_you_mean(*text, choices)));
}

std::string to_string(const Note& note) {
  return fmt::format("{}: {}: {}{}{}", to_string(note.place), note.object, note.field,
                     note.field.empty() ? "" : ": ", note.why);
}

}  // namespace gantry::tenancy
