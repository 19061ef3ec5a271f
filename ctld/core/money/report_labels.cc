#include "ctld/core/money/report_labels.h"

#include <algorithm>

#include "common/codec/codec.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"

namespace gantry::core {

std::string reported_labels(const State& state, const Job& job,
                            const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  const auto read = codec::decode<SpecExtras>(spec_bytes(state, job));
  if (!read) return {};
  const auto text_of = [&](bool other) {
    std::string out;
    for (const std::string& key : keys) {
      const auto it = read->spec.labels.find(key);
      if (it == read->spec.labels.end()) continue;
      if (!out.empty()) out += '\n';
      out += key + "=" + (other ? std::string(kOtherLabel) : it->second);
    }
    return out;
  };
  std::string labels = text_of(false);
  if (labels.empty()) return labels;
  const auto seen =
      state.ledger.labels.find(state.partition(class_of(state, job).partition).payer());
  const bool full = seen != state.ledger.labels.end() && seen->second.size() >= kMostReportedLabels;
  return full && !seen->second.contains(labels) ? text_of(true) : labels;
}

std::string label_in(std::string_view labels, std::string_view key) {
  while (!labels.empty()) {
    const std::string_view line = labels.substr(0, labels.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=')
      return std::string(line.substr(key.size() + 1));
    labels.remove_prefix(std::min(labels.size(), line.size() + 1));
  }
  return {};
}

std::string line_of_labels(std::string_view labels) {
  std::string out;
  for (const char c : labels) {
    if (c == ',' || c == '\\') out += '\\';
    out += c == '\n' ? ',' : c;
  }
  return out;
}

// FNV-1a. A user who finds two texts with one hash only mixes up the costs of own jobs, because
// tenant, project and user are other parts of the key.
std::string labels_word(std::string_view labels) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : labels) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string out;
  for (std::size_t i = 0; i < kLabelsWordBytes; ++i, value >>= 6) out += kLetters[value & 63];
  return out;
}

}  // namespace gantry::core
