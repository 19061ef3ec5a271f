#include "common/job/older_given.h"

#include <array>
#include <string_view>
#include <utility>

#include "common/job/job_spec.h"

namespace gantry {
namespace {

constexpr std::string_view kMailType = "mail-type=";
constexpr std::string_view kMailUser = "mail-user=";
constexpr std::string_view kWckey = "wckey=";
constexpr std::string_view kDistribution = "distribution=";
constexpr std::string_view kSubmitDir = "submit-dir=";
constexpr std::string_view kCommand = "command=";

struct OptionWord {
  std::string_view text;
  bool GivenOptions::*option;
};
constexpr std::array<OptionWord, 7> kOptionWords{
    {{"ntasks", &GivenOptions::tasks},
     {"ntasks-per-node", &GivenOptions::tasks_per_node},
     {"cpus-per-task", &GivenOptions::cpus_per_task},
     {"gres", &GivenOptions::gres},
     {"gpus", &GivenOptions::gpus},
     {"gpus-per-node", &GivenOptions::gpus_per_node},
     {"gpus-per-task", &GivenOptions::gpus_per_task}}};

std::optional<std::string_view> value_of(std::string_view word, std::string_view key) {
  if (!word.starts_with(key)) return std::nullopt;
  return word.substr(key.size());
}

// Reads one word; an error means that its value cannot be read.
Result<void> read_word(std::string_view word, OlderGiven& out) {
  for (const auto& [text, option] : kOptionWords)
    if (word == text) out.given.*option = true;
  if (word == "network") out.network = true;
  if (const auto value = value_of(word, kWckey)) out.wckey = *value;
  if (const auto value = value_of(word, kSubmitDir)) out.submit_dir = *value;
  if (const auto value = value_of(word, kCommand)) out.script_path = *value;
  if (const auto value = value_of(word, kMailType)) {
    ASSIGN(events, parse_mail_events(*value));
    out.mail.events = *events;
  }
  if (const auto value = value_of(word, kMailUser)) {
    ASSIGN(to, parse_mail_addresses(*value));
    out.mail.to = std::move(*to);
  }
  if (const auto value = value_of(word, kDistribution)) {
    ASSIGN(distribution, parse_distribution(*value));
    out.distribution = *distribution;
  }
  return {};
}

}  // namespace

OlderGiven read_older_given(std::span<const std::string> words) {
  OlderGiven out;
  for (const std::string& word : words)
    if (!read_word(word, out)) out.unread.push_back(word);
  return out;
}

Result<void> check_older_given(std::span<const std::string> unread) {
  OlderGiven ignored;
  for (const std::string& word : unread)
    if (auto read = read_word(word, ignored); !read) return read;
  return {};
}

std::vector<std::string> given_for_older_node(const GivenOptions& given,
                                              const std::optional<Distribution>& distribution,
                                              const std::string& submit_dir) {
  std::vector<std::string> out;
  for (const auto& [text, option] : kOptionWords)
    if (given.*option) out.emplace_back(text);
  if (distribution) out.push_back(std::string(kDistribution) + format_distribution(*distribution));
  if (!submit_dir.empty()) out.push_back(std::string(kSubmitDir) + submit_dir);
  return out;
}

// A spec with fields keeps them: the controller sends nodes both forms of the same options.
void JobSpec::from_older_form() {
  if (older_given.empty()) return;
  OlderGiven older = read_older_given(older_given);
  for (const auto& [text, option] : kOptionWords)
    given.*option = given.*option || older.given.*option;
  if (!mail.events) mail.events = older.mail.events;
  if (mail.to.empty()) mail.to = std::move(older.mail.to);
  if (wckey.empty()) wckey = std::move(older.wckey);
  if (!distribution) distribution = older.distribution;
  if (submit_dir.empty()) submit_dir = std::move(older.submit_dir);
  if (script_path.empty()) script_path = std::move(older.script_path);
  if (older.network && !network) network = NetworkMode::loopback;  // the default was not written
  older_given = std::move(older.unread);
}

}  // namespace gantry
