// The one file that includes yaml-cpp: text to the plain tree of yaml_tree.h.
#include "config/yaml_tree.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

namespace gantry::config {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxNodes = 1'000'000;  // aliases can multiply without bound

struct Copier {
  const std::string& name;
  std::size_t nodes = 0;
  std::string error;

  bool fail_at(const YAML::Mark& mark, std::string_view what) {
    if (error.empty())
      error = fmt::format("{}:{}:{}: {}", name, mark.line + 1, mark.column + 1, what);
    return false;
  }

  bool copy(const YAML::Node& from, Yaml& to, int depth) {
    const YAML::Mark mark = from.Mark();
    to.line = mark.line + 1;
    to.column = mark.column + 1;
    if (depth > kMaxDepth) return fail_at(mark, "this is nested too deeply");
    if (++nodes > kMaxNodes) return fail_at(mark, "the file has too many values");
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return true;
      case YAML::NodeType::Scalar:
        to.kind = Yaml::Kind::scalar;
        to.scalar = from.Scalar();
        return true;
      case YAML::NodeType::Sequence: return copy_list(from, to, depth);
      case YAML::NodeType::Map: return copy_map(from, to, depth);
    }
    return true;
  }

  bool copy_list(const YAML::Node& from, Yaml& to, int depth) {
    to.kind = Yaml::Kind::list;
    for (const auto& item : from) {
      to.items.emplace_back();
      if (!copy(item, to.items.back(), depth + 1)) return false;
    }
    return true;
  }

  bool copy_map(const YAML::Node& from, Yaml& to, int depth) {
    to.kind = Yaml::Kind::map;
    for (const auto& pair : from) {
      const YAML::Mark mark = pair.first.Mark();
      if (!pair.first.IsScalar()) return fail_at(mark, "a key must be a plain word");
      const std::string& key = pair.first.Scalar();
      if (key == "<<") continue;  // below
      for (const Yaml::Entry& other : to.entries)
        if (other.key == key)
          return fail_at(
              mark, fmt::format("`{}` is given twice; the first is in line {}", key, other.line));
      to.entries.push_back({key, mark.line + 1, mark.column + 1, {}});
      if (!copy(pair.second, to.entries.back().value, depth + 1)) return false;
    }
    for (const auto& pair : from)
      if (pair.first.Scalar() == "<<" && !merge(pair.second, to, depth)) return false;
    return true;
  }

  // "<<: *base" and "<<: [*a, *b]": keys of the other maps, where the map has none of that name.
  bool merge(const YAML::Node& from, Yaml& to, int depth) {
    if (from.IsSequence()) {
      for (const auto& item : from)
        if (!merge(item, to, depth + 1)) return false;
      return true;
    }
    if (!from.IsMap()) return fail_at(from.Mark(), "`<<` needs a set of keys, or a list of them");
    Yaml other;
    if (!copy(from, other, depth + 1)) return false;
    for (Yaml::Entry& entry : other.entries)
      if (find(to, entry.key) == nullptr) to.entries.push_back(std::move(entry));
    return true;
  }
};

// The text's documents, each copied by `take`; what yaml-cpp throws becomes an error.
template <class Take>
Result<void> with_documents(const std::string& text, const std::string& name, Take&& take) {
  if (text.size() > kMaxConfigBytes)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: has {} bytes; a configuration has at most {}", name, text.size(),
                            kMaxConfigBytes));
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: has a zero byte at offset {}; it is not a text file", name, zero));
  try {
    Copier copier{name, 0, {}};
    take(YAML::LoadAll(text), copier);
    if (!copier.error.empty()) return fail(ErrorCode::invalid_argument, copier.error);
    return {};
  } catch (const YAML::Exception& e) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}:{}: not valid YAML: {}", name, e.mark.line + 1,
                            e.mark.column + 1, e.msg));
  } catch (const std::exception& e) {
    return fail(ErrorCode::invalid_argument, fmt::format("{}: not valid YAML: {}", name, e.what()));
  }
}

}  // namespace

std::string_view name_of(Yaml::Kind kind) {
  switch (kind) {
    case Yaml::Kind::null: return "nothing";
    case Yaml::Kind::scalar: return "a single value";
    case Yaml::Kind::list: return "a list";
    case Yaml::Kind::map: return "a set of keys";
  }
  return "?";
}

const Yaml* find(const Yaml& map, std::string_view key) {
  for (const Yaml::Entry& entry : map.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Result<Yaml> parse_yaml(const std::string& text, const std::string& name) {
  Yaml tree;
  auto done = with_documents(text, name, [&](const std::vector<YAML::Node>& all, Copier& copier) {
    if (all.size() > 1)
      copier.fail_at(all[1].Mark(), "a configuration is one YAML document, not several");
    else if (!all.empty())
      copier.copy(all[0], tree, 0);
  });
  if (!done) return tl::unexpected(done.error());
  return tree;
}

Result<std::vector<Yaml>> parse_yaml_documents(const std::string& text, const std::string& name) {
  std::vector<Yaml> trees;
  auto done = with_documents(text, name, [&](const std::vector<YAML::Node>& all, Copier& copier) {
    for (const YAML::Node& node : all) {
      Yaml tree;
      if (!copier.copy(node, tree, 0)) return;
      if (tree.kind != Yaml::Kind::null) trees.push_back(std::move(tree));
    }
  });
  if (!done) return tl::unexpected(done.error());
  return trees;
}

}  // namespace gantry::config
