#include "cli/slurm/accounts/change_words.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/slurm/format.h"
#include "common/text/split.h"

namespace gantry::cli::slurm {
namespace {

void put_names(std::vector<std::string>& out, std::string_view text) {
  for (std::string& word : split_list(text)) out.push_back(std::move(word));
}

bool is_name_key(ChangedEntity entity, const std::string& key) {
  if (key.starts_with("name")) return true;
  return key.starts_with(entity == ChangedEntity::account ? "acc" : "user");
}

class Reader {
 public:
  Reader(ChangedEntity entity, bool adding) : entity_(entity), adding_(adding) {}

  Result<void> read(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string key = lower_case(word.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : unquoted(word.substr(equals + 1));
    const bool condition = adding_ || !setting_;
    if (key == "where" || key == "set")
      setting_ = key == "set";
    else if (equals == std::string::npos && condition)
      put_names(words_.names, word);
    else if (condition && is_name_key(entity_, key))
      put_names(words_.names, value);
    else if (condition && entity_ != ChangedEntity::account && key.starts_with("acc"))
      put_names(words_.accounts, value);
    else if (condition && !adding_ && entity_ == ChangedEntity::account && key.starts_with("user"))
      put_names(words_.users, value);
    else if (condition && key.size() >= 1 && std::string_view("clusters").starts_with(key))
      put_names(words_.clusters, value);
    else if (equals == std::string::npos || (!adding_ && !setting_))
      return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", word));
    else
      words_.settings.push_back({key, value});
    return {};
  }
  ChangeWords take() { return std::move(words_); }

 private:
  ChangedEntity entity_;
  bool adding_, setting_ = false;
  ChangeWords words_;
};

}  // namespace

std::string unquoted(const std::string& text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

std::optional<ChangedEntity> entity_of(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  const auto is = [&](std::string_view name, std::size_t least) {
    return word.size() >= least && name.starts_with(word);
  };
  if (is("users", 1)) return ChangedEntity::user;
  if (is("accounts", 2)) return ChangedEntity::account;
  if (is("coordinators", 2)) return ChangedEntity::coordinator;
  if (is("qos", 1)) return ChangedEntity::qos;
  return std::nullopt;
}

Result<Accounts::Settings> ChangeWords::own_settings() const {
  Accounts::Settings out;
  for (const RawSetting& setting : settings) TRY(read_setting(setting.key, setting.value, out));
  return out;
}

std::string ChangeWords::default_account() const {
  for (const RawSetting& setting : settings)
    if (setting.key.size() >= 8 && std::string_view("defaultaccount").starts_with(setting.key))
      return setting.value;
  return "";
}

bool ChangeWords::means_cluster(const std::string& name) const {
  return clusters.empty() || std::find(clusters.begin(), clusters.end(), name) != clusters.end();
}

Result<ChangeWords> read_change_words(ChangedEntity entity, const std::vector<std::string>& words,
                                      std::string_view verb) {
  const bool adding = verb == "add";
  Reader reader(entity, adding);
  for (std::size_t i = 1; i < words.size(); ++i) TRY(reader.read(words[i]));
  ChangeWords out = reader.take();
  if (out.names.empty())
    return fail(ErrorCode::usage,
                fmt::format(" Need name of {} to act on.",
                            entity == ChangedEntity::account ? "account" : "user"));
  if (entity == ChangedEntity::user && adding) {
    if (const std::string account = out.default_account();
        !account.empty() &&
        std::find(out.accounts.begin(), out.accounts.end(), account) == out.accounts.end())
      out.accounts.push_back(account);
    if (out.accounts.empty())
      return fail(ErrorCode::usage, " Need name of account to add user to.");
  }
  if (entity == ChangedEntity::coordinator && out.accounts.empty())
    return fail(ErrorCode::usage, " You need to specify the account list to give coordinators.");
  if (verb == "modify" && out.settings.empty())
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  return out;
}

}  // namespace gantry::cli::slurm
