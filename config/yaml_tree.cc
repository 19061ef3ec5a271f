// Turns a text into the plain tree of yaml_tree.h. It is the only file that includes yaml-cpp.
#include "config/yaml_tree.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "common/text/utf8.h"

namespace gantry::config {
namespace {

constexpr std::size_t kMaxDepth = 32;
// Limit, because aliases can multiply nodes without bound.
constexpr std::size_t kMaxNodes = 1'000'000;

struct Stop {};  // thrown to end the parser; Builder::error() says why

// Builds trees from yaml-cpp's events. yaml-cpp's own loader is not used: for a text that begins
// with a comma it makes documents without end, and it recurses as deeply as the text nests.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& name) : name_(name) {}

  std::vector<Yaml> trees;
  [[nodiscard]] const std::string& error() const { return error_; }

  void refuse(const YAML::Mark& mark, std::string_view what) {
    error_ = fmt::format("{}:{}:{}: {}", name_, mark.line + 1, mark.column + 1, what);
    throw Stop();
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos <= last_start_) refuse(mark, "not valid YAML: unexpected character");
    last_start_ = mark.pos;
    anchors_.clear();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    value(mark, anchor, Yaml::Kind::null, {});
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& text) override {
    value(mark, anchor, Yaml::Kind::scalar, text);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return refuse(mark, "this stands within what it names");
    Yaml copy = found->second;
    count(mark, nodes_in(copy));
    if (copy.kind == Yaml::Kind::scalar) {
      copy.line = mark.line + 1;
      copy.column = mark.column + 1;
    }
    take(mark, std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, Yaml::Kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, Yaml::Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {  // a list or map whose end has not come yet
    Yaml tree;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    YAML::Mark key_mark;
    std::vector<std::pair<YAML::Mark, Yaml>> merged;  // values of "<<"
  };

  void count(const YAML::Mark& mark, std::size_t more) {
    nodes_ += more;
    if (nodes_ > kMaxNodes) refuse(mark, "the file has too many values");
  }

  static std::size_t nodes_in(const Yaml& tree) {
    std::size_t sum = 1;
    for (const Yaml& item : tree.items) sum += nodes_in(item);
    for (const Yaml::Entry& entry : tree.entries) sum += nodes_in(entry.value);
    return sum;
  }

  void value(const YAML::Mark& mark, YAML::anchor_t anchor, Yaml::Kind kind, std::string text) {
    count(mark, 1);
    Yaml tree;
    tree.kind = kind;
    tree.scalar = std::move(text);
    tree.line = mark.line + 1;
    tree.column = mark.column + 1;
    if (anchor != 0) anchors_[anchor] = tree;
    take(mark, std::move(tree));
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Yaml::Kind kind) {
    count(mark, 1);
    if (open_.size() >= kMaxDepth) refuse(mark, "this is nested too deeply");
    if (!open_.empty() && open_.back().tree.kind == Yaml::Kind::map && !open_.back().has_key)
      refuse(mark, "a key must be a plain word");
    Open& fresh = open_.emplace_back();
    fresh.tree.kind = kind;
    fresh.tree.line = mark.line + 1;
    fresh.tree.column = mark.column + 1;
    fresh.mark = mark;
    fresh.anchor = anchor;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    for (auto& [mark, tree] : done.merged) merge(mark, std::move(tree), done.tree);
    if (done.anchor != 0) anchors_[done.anchor] = done.tree;
    take(done.mark, std::move(done.tree));
  }

  // Takes a complete value: the document, an item, a key, or the value of the key before it.
  void take(const YAML::Mark& mark, Yaml tree) {
    if (open_.empty()) {
      trees.push_back(std::move(tree));
      return;
    }
    Open& parent = open_.back();
    if (parent.tree.kind == Yaml::Kind::list) {
      parent.tree.items.push_back(std::move(tree));
      return;
    }
    if (!parent.has_key) {
      if (tree.kind != Yaml::Kind::scalar) refuse(mark, "a key must be a plain word");
      parent.has_key = true;
      parent.key = std::move(tree.scalar);
      parent.key_mark = mark;
      return;
    }
    parent.has_key = false;
    if (parent.key == "<<") {
      parent.merged.emplace_back(mark, std::move(tree));
      return;
    }
    for (const Yaml::Entry& other : parent.tree.entries)
      if (other.key == parent.key)
        refuse(parent.key_mark,
               fmt::format("`{}` is given twice; the first is in line {}", parent.key, other.line));
    parent.tree.entries.push_back({std::move(parent.key), parent.key_mark.line + 1,
                                   parent.key_mark.column + 1, std::move(tree)});
  }

  // Handles "<<: *base" and "<<: [*a, *b]": copies keys of the other maps that this map does not
  // have.
  void merge(const YAML::Mark& mark, Yaml&& from, Yaml& into) {
    if (from.kind == Yaml::Kind::list) {
      for (Yaml& item : from.items) merge(mark, std::move(item), into);
      return;
    }
    if (from.kind != Yaml::Kind::map) refuse(mark, "`<<` needs a set of keys, or a list of them");
    for (Yaml::Entry& entry : from.entries)
      if (find(into, entry.key) == nullptr) into.entries.push_back(std::move(entry));
  }

  const std::string& name_;
  std::string error_;
  std::size_t nodes_ = 0;
  int last_start_ = -1;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Yaml> anchors_;  // complete anchors of this document
};

// The documents of a text. Exceptions of yaml-cpp become errors.
Result<std::vector<Yaml>> read_documents(const std::string& text, const std::string& name,
                                         std::size_t most_bytes, std::size_t most_documents) {
  if (text.size() > most_bytes)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: has {} bytes; a file has at most {}",
                                                         name, text.size(), most_bytes));
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: has a zero byte at offset {}; it is not a text file", name, zero));
  // yaml-cpp also accepts UTF-16, and passes on bytes that are neither. Only UTF-8 is accepted
  // here.
  if (const std::size_t at = find_no_utf8(text); at != std::string::npos)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}: byte 0x{:02x} is not UTF-8 text", name,
                            1 + std::count(text.begin(), text.begin() + at, '\n'),
                            static_cast<unsigned char>(text[at])));
  Builder builder(name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder))
      if (builder.trees.size() > most_documents)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}:{}:{}: a configuration is one YAML document, not several", name,
                                builder.trees.back().line, builder.trees.back().column));
    return std::move(builder.trees);
  } catch (const Stop&) {
    return fail(ErrorCode::invalid_argument, builder.error());
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

bool same(const Yaml& a, const Yaml& b) {
  if (a.kind != b.kind || a.scalar != b.scalar || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.entries.size(); ++i)
    if (a.entries[i].key != b.entries[i].key || !same(a.entries[i].value, b.entries[i].value))
      return false;
  return true;
}

const Yaml* find(const Yaml& map, std::string_view key) {
  for (const Yaml::Entry& entry : map.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Result<Yaml> parse_yaml(const std::string& text, const std::string& name) {
  ASSIGN(trees, read_documents(text, name, kMaxConfigBytes, 1));
  return trees->empty() ? Yaml{} : std::move(trees->front());
}

Result<std::vector<Yaml>> parse_yaml_documents(const std::string& text, const std::string& name) {
  auto trees = read_documents(text, name, kMaxDocumentsBytes, text.size());
  if (trees) std::erase_if(*trees, [](const Yaml& t) { return t.kind == Yaml::Kind::null; });
  return trees;
}

}  // namespace gantry::config
