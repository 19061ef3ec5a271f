// The output of --json and --yaml of Slurm's commands: a tree that keeps the order in which it was
// built, with the shapes that Slurm's data_parser uses for numbers that may be unset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::codec {
class JsonWriter;
}

namespace gantry::cli::slurm {

class Tree {
 public:
  static Tree object() { return Tree(Kind::object, {}); }
  static Tree list() { return Tree(Kind::list, {}); }
  static Tree text(std::string_view value) { return Tree(Kind::text, std::string(value)); }
  static Tree number(std::int64_t value) { return Tree(Kind::plain, std::to_string(value)); }
  static Tree real(double value);
  static Tree boolean(bool value) { return Tree(Kind::plain, value ? "true" : "false"); }
  static Tree null() { return Tree(Kind::plain, "null"); }
  static Tree words(const std::vector<std::string>& words);

  // Adds a member of an object; with an empty key, adds an item to a list.
  Tree& add(std::string_view key, Tree value);
  Tree& add(std::string_view key, std::string_view value) { return add(key, text(value)); }
  Tree& add(std::string_view key, const char* value) { return add(key, text(value)); }
  Tree& add(std::string_view key, std::int64_t value) { return add(key, number(value)); }
  // Adds {"set": ..., "infinite": ..., "number": ...}.
  Tree& add_set(std::string_view key, std::int64_t value);
  Tree& add_unset(std::string_view key);
  Tree& add_infinite(std::string_view key);

  [[nodiscard]] std::string json() const;
  [[nodiscard]] std::string yaml() const;

 private:
  enum class Kind : std::uint8_t { object, list, text, plain };
  Tree(Kind kind, std::string value) : kind_(kind), value_(std::move(value)) {}
  Tree& add_number(std::string_view key, bool set, bool infinite, std::int64_t value);
  void write_json(codec::JsonWriter& out) const;
  void write_yaml(std::string& out, std::size_t depth) const;

  Kind kind_;
  std::string value_;  // for text and plain
  std::vector<std::pair<std::string, Tree>> children_;
};

// Writes the "meta" object first, and "errors" and "warnings" after the payload.
enum class Shape : std::uint8_t { json, yaml };
void print_document(Shape shape, std::string_view command,
                    std::vector<std::pair<std::string, Tree>> payload);

}  // namespace gantry::cli::slurm
