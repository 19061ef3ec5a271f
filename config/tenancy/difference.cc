// The difference of two sets of documents, by path of each value.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/tenancy/write.h"

namespace gantry::tenancy {
namespace {

using config::Yaml;

// A value of a tree. `key` and `same` identify paths and values uniquely, even if a name contains a
// point; `path` and `value` are their forms for people.
struct Leaf {
  std::string key, path;
  std::string same, value;
};

void flatten(const Yaml& tree, const Leaf& above, std::vector<Leaf>& out) {
  if (tree.kind == Yaml::Kind::map && !tree.entries.empty()) {
    for (const Yaml::Entry& entry : tree.entries)
      flatten(entry.value,
              {above.key + '\0' + entry.key,
               above.path.empty() ? entry.key : above.path + "." + entry.key, "", ""},
              out);
    return;
  }
  Leaf& leaf = out.emplace_back(above);
  if (tree.kind == Yaml::Kind::map) {
    leaf.same = leaf.value = "{}";
  } else if (tree.kind == Yaml::Kind::list) {
    for (const Yaml& item : tree.items) {
      leaf.same.append(1, '\0').append(item.scalar);
      leaf.value.append(leaf.value.empty() ? "" : ", ").append(item.scalar);
    }
    leaf.value = "[" + leaf.value + "]";
  } else {
    leaf.same = "=" + tree.scalar;
    leaf.value = tree.scalar.empty() ? "\"\"" : tree.scalar;  // "" means that there is no value
  }
}

std::vector<Leaf> leaves(const Document& document, Style style) {
  std::vector<Leaf> out;
  flatten(to_yaml(document, style), {}, out);
  return out;
}

std::vector<proto::FieldChange> field_changes(const std::vector<Leaf>& before,
                                              const std::vector<Leaf>& after) {
  std::map<std::string_view, const Leaf*> old;
  for (const Leaf& leaf : before) old[leaf.key] = &leaf;
  std::vector<proto::FieldChange> out;
  for (const Leaf& leaf : after) {
    const auto found = old.find(leaf.key);
    const bool was = found != old.end();
    if (!was || found->second->same != leaf.same)
      out.push_back({leaf.path, was ? found->second->value : "", leaf.value});
    if (was) old.erase(found);
  }
  for (const Leaf& leaf : before)
    if (old.contains(leaf.key)) out.push_back({leaf.path, leaf.value, ""});
  return out;
}

// Whether two documents are equal; the order of unordered lists does not count.
bool say_the_same(Document a, Document b) {
  if (a == b) return true;
  normalise(a);
  normalise(b);
  return a == b;
}

bool before(const Document& a, const Document& b) {
  return a.index() != b.index() ? a.index() < b.index() : name_of(a) < name_of(b);
}

proto::DocumentChange change_of(proto::ChangeAction action, const Document& document) {
  return {action, std::string(kind_of(document)), name_of(document), {}};
}

}  // namespace

void sort_documents(std::vector<Document>& documents) {
  std::vector<Document*> order;
  for (Document& document : documents) order.push_back(&document);
  std::stable_sort(order.begin(), order.end(),
                   [](const Document* a, const Document* b) { return before(*a, *b); });
  std::vector<Document> sorted;
  sorted.reserve(documents.size());
  for (Document* document : order) sorted.push_back(std::move(*document));
  documents = std::move(sorted);
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
      if (old[i] != fresh[j]) {
        change.changes =
            field_changes(leaves(old[i], Style::compare), leaves(fresh[j], Style::compare));
        if (!change.changes.empty() || !say_the_same(old[i], fresh[j]))
          change.action = ChangeAction::changed;
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
