// The difference of two sets of documents, by path of each value.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/tenancy/write.h"

namespace gantry::tenancy {
namespace {

using config::Yaml;

struct Leaf {
  std::string path;
  std::string value;
};

void flatten(const Yaml& tree, const std::string& path, std::vector<Leaf>& out) {
  if (tree.kind == Yaml::Kind::map) {
    for (const Yaml::Entry& entry : tree.entries)
      flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, out);
    return;
  }
  std::string value = tree.scalar;
  if (tree.kind == Yaml::Kind::list) {
    for (const Yaml& item : tree.items) value += (value.empty() ? "" : ", ") + item.scalar;
    value = "[" + value + "]";
  }
  out.push_back({path, std::move(value)});
}

std::vector<Leaf> leaves(const Document& document, Style style) {
  std::vector<Leaf> out;
  flatten(to_yaml(document, style), "", out);
  return out;
}

std::vector<proto::FieldChange> field_changes(const std::vector<Leaf>& before,
                                              const std::vector<Leaf>& after) {
  std::map<std::string_view, const Leaf*> old;
  for (const Leaf& leaf : before) old[leaf.path] = &leaf;
  std::vector<proto::FieldChange> out;
  for (const Leaf& leaf : after) {
    const auto found = old.find(leaf.path);
    const std::string was = found == old.end() ? "" : found->second->value;
    if (was != leaf.value) out.push_back({leaf.path, was, leaf.value});
    if (found != old.end()) old.erase(found);
  }
  for (const Leaf& leaf : before)
    if (old.contains(leaf.path)) out.push_back({leaf.path, leaf.value, ""});
  return out;
}

bool before(const Document& a, const Document& b) {
  return a.index() != b.index() ? a.index() < b.index() : name_of(a) < name_of(b);
}

proto::DocumentChange change_of(proto::ChangeAction action, const Document& document) {
  return {action, std::string(kind_of(document)), name_of(document), {}};
}

}  // namespace

void sort_documents(std::vector<Document>& documents) {
  std::stable_sort(documents.begin(), documents.end(), before);
}

std::vector<proto::DocumentChange> difference(std::span<const Document> old,
                                              std::span<const Document> fresh) {
  using proto::ChangeAction;
  std::vector<proto::DocumentChange> out;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < old.size() || j < fresh.size()) {
    if (j == fresh.size() || (i < old.size() && before(old[i], fresh[j]))) {
      out.push_back(change_of(ChangeAction::removed, old[i++]));
    } else if (i == old.size() || before(fresh[j], old[i])) {
      auto& change = out.emplace_back(change_of(ChangeAction::created, fresh[j]));
      change.changes = field_changes({}, leaves(fresh[j++], Style::file));
      std::erase_if(change.changes, [](const auto& field) { return field.path == "name"; });
    } else {
      auto& change = out.emplace_back(change_of(ChangeAction::unchanged, fresh[j]));
      if (old[i] != fresh[j]) {  // they may still differ only in the order of a list
        change.changes =
            field_changes(leaves(old[i], Style::compare), leaves(fresh[j], Style::compare));
        if (!change.changes.empty()) change.action = ChangeAction::changed;
      }
      ++i;
      ++j;
    }
  }
  return out;
}

std::vector<Document> with_changes(std::span<const Document> documents,
                                   std::span<const Document> changed,
                                   std::span<const proto::DocumentRef> removals) {
  std::set<std::pair<std::string_view, std::string_view>> gone;
  for (const proto::DocumentRef& ref : removals) gone.emplace(ref.kind, ref.name);
  for (const Document& document : changed) gone.emplace(kind_of(document), name_of(document));
  std::vector<Document> out;
  for (const Document& document : documents)
    if (!gone.contains({kind_of(document), name_of(document)})) out.push_back(document);
  out.insert(out.end(), changed.begin(), changed.end());
  sort_documents(out);
  return out;
}

}  // namespace gantry::tenancy
