#include "cli/slurm/records/node_sort.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "cli/columns/job_words.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kNodeSortMarks = ",+-# ";

struct NodeSortKey {
  char letter;
  bool down;        // the key has a -
  bool configured;  // the key has a #
};

std::vector<NodeSortKey> node_sort_keys(std::string_view keys) {
  std::vector<NodeSortKey> out;
  NodeSortKey next{0, false, false};
  for (const char c : keys) {
    switch (c) {
      case '-': next.down = true; break;
      case '+': next.down = false; break;
      case '#': next.configured = true; break;
      case ',':
      case ' ': next = {0, false, false}; break;
      default:
        next.letter = c;
        out.push_back(next);
        next = {0, false, false};
    }
  }
  return out;
}

std::string padded_number(std::int64_t n) {
  return fmt::format("{:020}", n);
}

// Slurm's number of a node's state: the base state in the low bits, and a higher bit for each mark.
std::int64_t state_number(const proto::NodeRow& node) {
  static constexpr std::pair<std::string_view, std::int64_t> kNumbers[] = {
      {"DOWN", 1},
      {"IDLE", 2},
      {"ALLOCATED", 3},
      {"MIXED", 5},
      {"RESERVED", 1 << 5},
      {"DRAIN", 1 << 9},
      {"COMPLETING", 1 << 10},
      {"NOT_RESPONDING", 1 << 11},
      {"MAINTENANCE", 1 << 15}};
  std::int64_t number = 0;
  for (const std::string& word : state_words(node))
    for (const auto& [known, value] : kNumbers)
      if (word == known) number += value;
  return number;
}

// A text whose numbers sort by value: "gpu10" after "gpu9", "10/0" after "9/1".
std::string natural(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at) {
      out += std::string(end - at < 20 ? 20 - (end - at) : 0, '0');
      out += text.substr(at, end - at);
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

// A text that sorts as the field's value does.
std::string node_sort_text(const NodeGroup& line, const NodeSortKey& key,
                           std::span<const proto::PartitionRow> partitions) {
  const proto::NodeRow* node = line.nodes.empty() ? nullptr : line.nodes.front();
  const proto::PartitionRow* partition = line.partition;
  const auto limit = [](const std::optional<Duration>& t) {
    return padded_number(t ? t->us : INT64_MAX);
  };
  switch (key.letter) {
    case 'P':
      if (key.configured && partition != nullptr)
        return padded_number(partition - partitions.data());
      return partition != nullptr ? natural(partition->name) : "";
    case 't':
    case 'T': return padded_number(node != nullptr ? state_number(*node) : 0);
    case 'l': return limit(partition != nullptr ? partition->max_time : std::nullopt);
    case 'L': return limit(partition != nullptr ? partition->default_time : std::nullopt);
    case 'O': return node != nullptr ? fmt::format("{:020.3f}", node->load) : "";
    case 'H': return node != nullptr && node->since ? padded_number(node->since->us) : "";
    default: break;
  }
  std::string text;
  for (const Column<NodeGroup>& field : node_fields())
    if (field.letter == key.letter) field.put(text, line);
  return natural(text);
}

}  // namespace

Result<void> check_node_sort(std::string_view keys) {
  const auto fields = node_fields();
  for (const char c : keys) {
    const bool known = kNodeSortMarks.find(c) != std::string_view::npos ||
                       std::any_of(fields.begin(), fields.end(),
                                   [&](const Column<NodeGroup>& f) { return f.letter == c; });
    if (!known)
      return fail(ErrorCode::invalid_argument, fmt::format("Invalid sort specification: {}", c));
  }
  return {};
}

void sort_node_lines(std::vector<NodeGroup>& lines, std::string_view text,
                     std::span<const proto::PartitionRow> partitions) {
  const std::vector<NodeSortKey> keys = node_sort_keys(text);
  // Sorts by the last key first. Each later sort is stable, so it keeps that order for equal lines.
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    std::vector<std::pair<std::string, NodeGroup>> sorted;
    sorted.reserve(lines.size());
    for (NodeGroup& line : lines) {
      std::string by = node_sort_text(line, *key, partitions);
      sorted.emplace_back(std::move(by), std::move(line));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
      return key->down ? a.first > b.first : a.first < b.first;
    });
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = std::move(sorted[i].second);
  }
}

}  // namespace gantry::cli::slurm
