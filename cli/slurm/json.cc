#include "cli/slurm/json.h"

#include <fmt/core.h>

#include "cli/slurm/frame.h"
#include "common/codec/json_io.h"
#include "common/text/printable.h"

namespace gantry::cli::slurm {

Tree Tree::real(double value) {
  return Tree(Kind::plain, fmt::format("{:.6f}", value));
}

Tree Tree::words(const std::vector<std::string>& words) {
  Tree tree = list();
  for (const std::string& word : words) tree.add("", word);
  return tree;
}

Tree& Tree::add(std::string_view key, Tree value) {
  children_.emplace_back(std::string(key), std::move(value));
  return *this;
}

Tree& Tree::add_number(std::string_view key, bool set, bool infinite, std::int64_t value) {
  Tree tree = object();
  tree.add("set", boolean(set)).add("infinite", boolean(infinite)).add("number", value);
  return add(key, std::move(tree));
}
Tree& Tree::add_set(std::string_view key, std::int64_t value) {
  return add_number(key, true, false, value);
}
Tree& Tree::add_unset(std::string_view key) {
  return add_number(key, false, false, 0);
}
Tree& Tree::add_infinite(std::string_view key) {
  return add_number(key, false, true, 0);
}

void Tree::write_json(codec::JsonWriter& out) const {
  switch (kind_) {
    case Kind::text: out.string(value_); return;
    case Kind::plain: out.written(value_); return;
    case Kind::list:
      out.begin_array();
      for (const auto& [key, child] : children_) child.write_json(out);
      out.end_array();
      return;
    case Kind::object:
      out.begin_object();
      for (const auto& [key, child] : children_) {
        out.key(key);
        child.write_json(out);
      }
      out.end_object();
      return;
  }
}

void Tree::write_yaml(std::string& out, std::size_t depth) const {
  if (kind_ == Kind::text || kind_ == Kind::plain || children_.empty()) {
    out += ' ';
    if (kind_ == Kind::text)
      append_json_string(out, value_);
    else
      out += kind_ == Kind::plain ? value_ : kind_ == Kind::object ? "{}" : "[]";
    out += '\n';
    return;
  }
  out += '\n';
  for (const auto& [key, child] : children_) {
    out.append(2 * depth, ' ');
    if (kind_ == Kind::object) {
      append_json_string(out, key);
      out += ':';
    } else {
      out += '-';
    }
    child.write_yaml(out, depth + 1);
  }
}

std::string Tree::json() const {
  codec::JsonWriter out(codec::JsonStyle::pretty);
  write_json(out);
  return out.take() + "\n";
}

std::string Tree::yaml() const {
  std::string out = "---";
  write_yaml(out, 0);
  return out;
}

void print_document(Shape shape, std::string_view command,
                    std::vector<std::pair<std::string, Tree>> payload) {
  Tree version = Tree::object();
  version.add("major", "25").add("micro", "0").add("minor", "05");
  Tree slurm = Tree::object();
  slurm.add("version", std::move(version)).add("release", "25.05.0");
  slurm.add("cluster", cluster_name());
  Tree plugin = Tree::object();
  plugin.add("type", "openapi/slurmctld").add("name", "Gantry " + std::string(command));
  plugin.add("data_parser", "data_parser/v0.0.43").add("accounting_storage", "");
  Tree meta = Tree::object();
  meta.add("plugin", std::move(plugin)).add("command", Tree::words({std::string(command)}));
  meta.add("Slurm", Tree(slurm)).add("slurm", std::move(slurm));
  Tree document = Tree::object();
  for (auto& [key, value] : payload) document.add(key, std::move(value));
  document.add("meta", std::move(meta)).add("errors", Tree::list());
  document.add("warnings", Tree::list());
  const std::string text = shape == Shape::json ? document.json() : document.yaml();
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace gantry::cli::slurm
