#include "config/tenancy/files/manifests.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <tuple>

#include "config/tenancy/check.h"
#include "config/tenancy/write.h"

namespace gantry::tenancy {
namespace {

using config::Yaml;

const std::string kBefore = "applied before";  // the file name for places in kept objects

bool contains(const std::vector<Yaml>& items, const Yaml& item) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Yaml& i) { return config::same(i, item); });
}

const Yaml kNothing;

const Yaml& value_of(const Yaml& map, const std::string& key) {
  const Yaml* found = map.kind == Yaml::Kind::map ? config::find(map, key) : nullptr;
  return found == nullptr ? kNothing : *found;
}

Yaml merge_lists(const Yaml& now, const Yaml& before, const Yaml& after) {
  Yaml out = now;
  out.kind = Yaml::Kind::list;
  std::erase_if(out.items, [&](const Yaml& item) {
    return contains(before.items, item) && !contains(after.items, item);
  });
  for (const Yaml& item : after.items)
    if (!contains(out.items, item)) out.items.push_back(item);
  return out.items.empty() ? Yaml{} : out;
}

Yaml merge_maps(const Yaml& now, const Yaml& before, const Yaml& after, bool again) {
  Yaml out;
  out.kind = Yaml::Kind::map;
  std::set<std::string> seen;
  for (const Yaml* map : {&now, &after})
    for (const Yaml::Entry& entry : map->entries) {
      if (!seen.insert(entry.key).second) continue;
      Yaml value = merge_trees(value_of(now, entry.key), value_of(before, entry.key),
                               value_of(after, entry.key), again);
      if (value.kind != Yaml::Kind::null)
        out.entries.push_back({entry.key, 0, 0, std::move(value)});
    }
  return out.entries.empty() ? Yaml{} : out;
}

template <class T>
bool is_made(const Document& document) {
  return std::holds_alternative<T>(document);
}

// The known documents that the translation of `set` may look up: tiers, flavors, and a topology
// that no object of the set makes. All other documents are left out, so that the result depends
// only on the objects.
std::vector<Document> background(std::span<const Document> known,
                                 const std::map<std::string, Manifest>& set) {
  std::vector<Document> out;
  for (const Document& document : known) {
    if (is_made<Tier>(document) || is_made<Flavor>(document)) out.push_back(document);
    if (is_made<Topology>(document) && !set.contains("Topology//" + name_of(document)))
      out.push_back(document);
  }
  return out;
}

const Document* find_key(std::span<const Document> documents, const Document& like) {
  for (const Document& document : documents)
    if (document.index() == like.index() && name_of(document) == name_of(like)) return &document;
  return nullptr;
}

class Merge {
 public:
  Merge(std::span<const GivenObject> given, std::span<const Document> known,
        const std::string& user_domain)
      : given_(given), known_(known), user_domain_(user_domain) {}

  Result<Merged> run(bool forget) {
    TRY(collect(forget));
    ASSIGN(old, translate(before_, false));
    ASSIGN(fresh, translate(after_, true));
    for (const ReadDocument& read : *fresh) TRY(bring_in(*old, read));
    for (const ReadDocument& read : *old) TRY(take_out(read, *fresh));
    keep_objects();
    return std::move(out_);
  }

 private:
  Result<void> collect(bool forget) {
    // Checks in the order of the files, so that the first mistake is the first in them.
    Kubernetes in_order(user_domain_);
    for (const GivenObject& object : given_) {
      if (auto done = in_order.add(object.value()); !done) return done;
    }
    if (!forget)
      for (const Document& document : known_)
        if (const auto* m = std::get_if<Manifest>(&document)) before_.emplace(m->name, *m);
    after_ = before_;
    for (const GivenObject& object : given_) {
      const std::string name = manifest_name(*object.tree);
      if (name.empty()) continue;
      const auto [at, once] = trees_.emplace(name, &object);
      if (!once)
        return object.value().wrong(fmt::format("{} is there twice; the first is at {}", name,
                                                to_string(at->second->value().place())));
      after_[name] = {name, flow_text(*object.tree), user_domain_};
      const std::size_t slash = name.find('/'), second = name.find('/', slash + 1);
      touched_.insert(name.substr(slash + 1, second - slash - 1));
      if (second == slash + 1) touched_.insert(name.substr(second + 1));
    }
    return {};
  }

  // Translates a set of objects as if nothing else existed. The set is read in the order of names,
  // because it has no other order.
  Result<std::vector<ReadDocument>> translate(const std::map<std::string, Manifest>& set,
                                              bool notes) {
    Kubernetes objects(user_domain_);
    for (const auto& [name, manifest] : set) {
      objects.set_user_domain(manifest.user_domain);
      const auto given = notes ? trees_.find(name) : trees_.end();
      if (given != trees_.end()) {
        const GivenObject& object = *given->second;
        TRY(objects.add(object.value()));
        continue;
      }
      ASSIGN(tree, config::parse_yaml(manifest.text, kBefore));
      kept_.push_back(std::move(*tree));
      TRY(objects.add(Value(kept_.back(), kBefore, "")));
    }
    if (notes)
      for (const GivenObject& object : given_)
        if (manifest_name(*object.tree).empty()) TRY(objects.add(object.value()));
    const std::vector<Document> others = background(known_, set);
    auto made = objects.finish(others);
    if (notes)
      for (const Note& note : objects.notes())
        if (note.place.file != kBefore) out_.notes.push_back(note);
    if (notes) sort_notes();
    return made;
  }

  // Sorts notes in the order of the files.
  void sort_notes() {
    std::map<std::string, std::size_t> order;
    for (const GivenObject& object : given_) order.emplace(*object.file, order.size());
    std::stable_sort(out_.notes.begin(), out_.notes.end(), [&](const Note& a, const Note& b) {
      return std::tuple{order[a.place.file], a.place.line, a.place.column} <
             std::tuple{order[b.place.file], b.place.line, b.place.column};
    });
  }

  static const ReadDocument* find_in(const std::vector<ReadDocument>& list, const Document& like) {
    for (const ReadDocument& read : list)
      if (read.document.index() == like.index() && name_of(read.document) == name_of(like))
        return &read;
    return nullptr;
  }

  static Yaml tree_of(const Document& document) { return to_yaml(document, Style::file); }

  Result<Document> document_of(std::string_view kind, const Yaml& tree) {
    texts_.push_back(fmt::format("apiVersion: gantry/v1\nkind: {}\n{}", kind, yaml_text(tree)));
    ASSIGN(parsed, config::parse_yaml(texts_.back(), kBefore));
    kept_.push_back(std::move(*parsed));
    ASSIGN(read, read_document(Value(kept_.back(), kBefore, "")));
    normalise(read->document);
    return std::move(read->document);
  }

  Result<void> bring_in(const std::vector<ReadDocument>& old, ReadDocument read) {
    const Document& fresh = read.document;
    const ReadDocument* was = find_in(old, fresh);
    const bool again = touched_.contains(name_of(fresh));
    if (!again && was != nullptr && was->document == fresh) return {};
    if (const Document* now = find_key(known_, fresh)) {
      auto merged =
          document_of(kind_of(fresh),
                      merge_trees(tree_of(*now), was == nullptr ? kNothing : tree_of(was->document),
                                  tree_of(fresh), again));
      if (!merged) return tl::unexpected(merged.error());
      read.document = std::move(*merged);
    }
    out_.documents.push_back(std::move(read));
    return {};
  }

  // Removes what no object makes any more, unless a person or another object has added something to
  // it.
  Result<void> take_out(const ReadDocument& was, const std::vector<ReadDocument>& fresh) {
    if (find_in(fresh, was.document) != nullptr) return {};
    const Document* now = find_key(known_, was.document);
    if (now == nullptr) return {};
    if (*now == was.document) {
      out_.removals.push_back({std::string(kind_of(*now)), name_of(*now)});
      return {};
    }
    Yaml left = merge_trees(tree_of(*now), tree_of(was.document), kNothing, false);
    Yaml name;
    name.kind = Yaml::Kind::scalar;
    name.scalar = name_of(*now);
    left.kind = Yaml::Kind::map;
    if (config::find(left, "name") == nullptr)
      left.entries.insert(left.entries.begin(), {"name", 0, 0, name});
    ASSIGN(document, document_of(kind_of(*now), left));
    ReadDocument read;
    read.document = std::move(*document);
    read.place = was.place;
    read.translated = true;
    out_.documents.push_back(std::move(read));
    return {};
  }

  void keep_objects() {
    for (const auto& [name, object] : trees_) {
      ReadDocument read;
      read.document = after_.at(name);
      read.place = object->value().place();
      read.translated = true;
      out_.documents.push_back(std::move(read));
    }
  }

  std::span<const GivenObject> given_;
  std::span<const Document> known_;
  std::string user_domain_;
  std::map<std::string, Manifest> before_, after_;   // by name
  std::map<std::string, const GivenObject*> trees_;  // objects of this apply
  std::set<std::string> touched_;                    // namespaces, and names of what is in none
  std::deque<Yaml> kept_;                            // values refer to them
  std::deque<std::string> texts_;
  Merged out_;
};

std::string quoted_json(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string flow_text(const Yaml& tree) {
  std::string out;
  switch (tree.kind) {
    case Yaml::Kind::null: return "null";
    case Yaml::Kind::scalar: return quoted_json(tree.scalar);
    case Yaml::Kind::list:
      for (const Yaml& item : tree.items) out += (out.empty() ? "" : ", ") + flow_text(item);
      return "[" + out + "]";
    case Yaml::Kind::map:
      for (const Yaml::Entry& entry : tree.entries)
        out += (out.empty() ? "" : ", ") + quoted_json(entry.key) + ": " + flow_text(entry.value);
      return "{" + out + "}";
  }
  return out;
}

Yaml merge_trees(const Yaml& now, const Yaml& before, const Yaml& after, bool again) {
  const Yaml::Kind kind = now.kind == Yaml::Kind::null ? after.kind : now.kind;
  const bool one_kind = after.kind == kind || after.kind == Yaml::Kind::null;
  if (one_kind && kind == Yaml::Kind::map) return merge_maps(now, before, after, again);
  if (one_kind && kind == Yaml::Kind::list) return merge_lists(now, before, after);
  if (after.kind == Yaml::Kind::null)
    return before.kind != Yaml::Kind::null && config::same(now, before) ? Yaml{} : now;
  return again || before.kind == Yaml::Kind::null || !config::same(before, after) ? after : now;
}

Result<Merged> merge_manifests(std::span<const GivenObject> given, std::span<const Document> known,
                               const std::string& user_domain, bool forget) {
  return Merge(given, known, user_domain).run(forget);
}

}  // namespace gantry::tenancy
