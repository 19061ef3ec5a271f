#include "noded/pmi/pmi2/server.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "noded/pmi/wire.h"

namespace gantry::pmi2 {
namespace {

// Result codes with the numbers of PMI-2 (pmi2.h); PMI-1 distinguishes only 0 and others.
constexpr int kWrongArgument = 3;
constexpr int kWrongKeyLength = 5;
constexpr int kWrongValueLength = 7;
constexpr int kOther = 14;
constexpr int kRefused = -1;

constexpr std::string_view kMapping = "PMI_process_mapping";
constexpr const char* kEverybody = "*";  // every task takes part in a fence

int integer_of(std::optional<std::string_view> text, int otherwise) {
  int value = 0;
  if (!text) return otherwise;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? value : otherwise;
}

void append_entry(std::string& part, std::string_view key, std::string_view value) {
  pmix::append_number(part, static_cast<std::uint32_t>(key.size()));
  pmix::append_number(part, static_cast<std::uint32_t>(value.size()));
  (part += key) += value;
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

Server::Server(pmix::Layout layout, Out out)
    : layout_(std::move(layout)),
      out_(std::move(out)),
      collect_(layout_.self, static_cast<std::uint32_t>(layout_.nodes.size()), out_.peer,
               [](std::uint32_t, std::uint32_t, std::uint32_t) {
               }),  // nobody requests a single rank's data
      tasks_(layout_.tasks[layout_.self]) {
  // A mapping that is too long for a value is left out; then libraries compare host names.
  if (std::string mapping = process_mapping(layout_.tasks); mapping.size() <= kMaxValue)
    values_.emplace(kMapping, std::move(mapping));
}

std::vector<std::string> Server::environment(std::uint32_t task, int fd) const {
  return {"PMI_FD=" + std::to_string(fd), "PMI_RANK=" + std::to_string(rank(task)),
          "PMI_SIZE=" + std::to_string(layout_.size()), "PMI_JOBID=" + layout_.name,
          "PMI_SPAWNED=0"};
}

Server::Handler Server::handler_of(Version version, std::string_view name) {
  static constexpr std::array<Entry, 17> kFirst{{
      {"get_maxes", &Server::get_maxes},
      {"get_appnum", &Server::get_appnum},
      {"get_universe_size", &Server::get_universe_size},
      {"get_my_kvsname", &Server::get_my_kvsname},
      {"put", &Server::put_1},
      {"get", &Server::get_1},
      {"getbyidx", &Server::get_by_index},
      {"barrier_in", &Server::fence},
      {"finalize", &Server::finalize},
      {"abort", &Server::abort},
      {"publish_name", &Server::refuse_name},
      {"unpublish_name", &Server::refuse_name},
      {"lookup_name", &Server::refuse_name},
      {"create_kvs", &Server::refuse_space},
      {"destroy_kvs", &Server::refuse_space},
      {"spawn", &Server::refuse_spawn},
      {"init", &Server::init},
  }};
  static constexpr std::array<Entry, 10> kSecond{{
      {"fullinit", &Server::full_init},
      {"job-getid", &Server::job_id},
      {"info-getjobattr", &Server::job_attribute},
      {"info-putnodeattr", &Server::put_node},
      {"info-getnodeattr", &Server::get_node},
      {"kvs-put", &Server::put_2},
      {"kvs-get", &Server::get_2},
      {"kvs-fence", &Server::fence},
      {"finalize", &Server::finalize},
      {"abort", &Server::abort},
  }};
  if (version == Version::none) return name == "init" ? &Server::init : nullptr;
  if (version == Version::v1) {
    for (const Entry& entry : kFirst)
      if (entry.name == name) return entry.handler;
    return nullptr;  // the name of the answer could only be guessed
  }
  for (const Entry& entry : kSecond)
    if (entry.name == name) return entry.handler;
  return &Server::refuse_2;
}

void Server::from_task(std::uint32_t task, std::string_view bytes) {
  Task& t = tasks_[task];
  if (!t.open) return;
  t.in += bytes;
  std::size_t at = 0;
  Command command;
  while (t.open) {
    const std::size_t before = at;
    const Taken taken = take(t.version, t.in, at, command);
    if (taken == Taken::more) break;
    if (taken == Taken::malformed)
      return fault(task, "its PMI request is not understood: " +
                             shown(std::string_view(t.in).substr(before)));
    obey(task, command);
  }
  t.in.erase(0, at);
}

void Server::obey(std::uint32_t task, const Command& command) {
  const Handler handler = handler_of(tasks_[task].version, command.name);
  if (handler == nullptr)
    return fault(task, "its PMI request is not known here: " + shown(command.name));
  (this->*handler)(task, command);
}

void Server::gone(std::uint32_t task) {
  tasks_[task].open = false;
  look_for_absent();
}

void Server::from_peer(std::uint32_t node, std::string_view bytes) {
  if (bytes.empty() && node < layout_.nodes.size())
    ended_nodes_.insert(node);
  else if (!collect_.receive(node, bytes))
    return fault(0, "the PMI servers of the step do not understand each other");
  look_for_absent();
}

void Server::fault(std::uint32_t task, const std::string& why) {
  tasks_[task].open = false;
  out_.close(task);
  if (!ended_) out_.fault(rank(task), why);
  ended_ = true;
}

// Ends the step if a task waits in a fence, here or on another node, for a task that has left.
void Server::look_for_absent() {
  const bool wanted =
      collect_.awaited(kEverybody) ||
      std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) { return t.open && t.in_fence; });
  const auto absent = std::find_if(tasks_.begin(), tasks_.end(),
                                   [](const Task& t) { return !t.open && !t.in_fence; });
  if (wanted && absent != tasks_.end())
    fault(static_cast<std::uint32_t>(absent - tasks_.begin()),
          "it has left PMI, and others wait for it in a fence");
  else if (const auto node = collect_.waits_for(kEverybody, ended_nodes_))
    fault(0, "it waits in a fence for the tasks of " + layout_.nodes[*node] + ", which have ended");
}

// In PMI-2 a thread that waits for an answer has a name.
Reply Server::reply_to(std::uint32_t task, const Command& command) const {
  Reply reply(tasks_[task].version, command.name + "-response");
  if (const auto thread = command.find("thrid")) reply.add("thrid", thread->substr(0, kMaxKey));
  return reply;
}

// ---- PMI-1 and PMI-2

void Server::init(std::uint32_t task, const Command& command) {
  Task& t = tasks_[task];
  const int version = integer_of(command.find("pmi_version"), 0);
  if (t.version == Version::none && (version == 1 || version == 2))
    t.version = version == 1 ? Version::v1 : Version::v2;
  const bool good = version != 0 && version == (t.version == Version::v1 ? 1 : 2);
  answer(task, Reply(Version::v1, "response_to_init")
                   .result(good ? kGood : kRefused)
                   .add("pmi_version", t.version == Version::v1 ? 1 : 2)
                   .add("pmi_subversion", t.version == Version::v1 ? 1 : 0));
}

// In PMI-2 an abort may concern one task alone, which then ends by itself.
void Server::abort(std::uint32_t task, const Command& command) {
  if (tasks_[task].version == Version::v2 && command.find("isworld") == "FALSE") return;
  auto why = command.find("message");
  if (!why) why = command.find("msg");
  if (!ended_)
    out_.abort(rank(task), integer_of(command.find("exitcode"), 1), shown(why.value_or("")));
  ended_ = true;
}

void Server::finalize(std::uint32_t task, const Command& command) {
  if (tasks_[task].version == Version::v1)
    answer(task, Reply(Version::v1, "finalize_ack").result(kGood));
  else
    answer(task, reply_to(task, command).result(kGood));
  out_.close(task);
  gone(task);
}

void Server::enter_fence(std::uint32_t task, std::string_view thread) {
  Task& t = tasks_[task];
  if (t.in_fence) return fault(task, "it is in a PMI fence already");
  t.in_fence = true;
  t.fence_thread = thread;
  const bool all =
      std::all_of(tasks_.begin(), tasks_.end(), [](const Task& other) { return other.in_fence; });
  if (!all) return look_for_absent();
  std::set<std::uint32_t> among;
  for (std::uint32_t node = 0; node < layout_.nodes.size(); ++node) among.insert(node);
  collect_.gather(kEverybody, among, std::exchange(part_, {}),
                  [this](bool, const std::string& parts) { leave_fence(parts); });
  look_for_absent();
}

void Server::leave_fence(const std::string& all) {
  constexpr std::size_t kHead = 2 * sizeof(std::uint32_t);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t left = all.size() - at;
    const std::size_t key = left < kHead ? 0 : number_at(all, at);
    const std::size_t value = left < kHead ? 0 : number_at(all, at + sizeof(std::uint32_t));
    if (left < kHead || left - kHead < key || left - kHead - key < value)
      return fault(0, "the PMI servers of the step do not understand each other");
    values_.insert_or_assign(all.substr(at + kHead, key), all.substr(at + kHead + key, value));
    at += kHead + key + value;
  }
  for (Task& t : tasks_) t.in_fence = false;
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
    const Task& t = tasks_[task];
    Reply reply(t.version, t.version == Version::v1 ? "barrier_out" : "kvs-fence-response");
    if (!t.fence_thread.empty()) reply.add("thrid", t.fence_thread);
    if (t.open) answer(task, reply.result(kGood));
  }
}

// Returns "", or why the value cannot be put.
std::string Server::put(const Command& command, int& rc) {
  const auto key = command.find("key"), value = command.find("value");
  rc = kWrongArgument;
  if (!key || !value || key->empty()) return "a key and a value are needed";
  rc = kWrongKeyLength;
  if (key->size() > kMaxKey) return "the key is too long";
  rc = kWrongValueLength;
  if (value->size() > kMaxValue) return "the value is too long";
  rc = kOther;
  if (part_.size() + key->size() + value->size() > kMaxPart)
    return "the tasks of this node have put too much";
  append_entry(part_, *key, *value);
  rc = kGood;
  return "";
}

// ---- PMI-1

void Server::get_maxes(std::uint32_t task, const Command&) {
  answer(task, Reply(Version::v1, "maxes")
                   .result(kGood)
                   .add("kvsname_max", kMaxName)
                   .add("keylen_max", kMaxKey)
                   .add("vallen_max", kMaxValue));
}

void Server::put_1(std::uint32_t task, const Command& command) {
  int rc = kGood;
  const std::string why = put(command, rc);
  answer(task, Reply(Version::v1, "put_result").result(rc, why));
}

void Server::get_1(std::uint32_t task, const Command& command) {
  Reply reply(Version::v1, "get_result");
  const auto it = values_.find(command.find("key").value_or(""));
  if (it != values_.end())
    reply.result(kGood).add("value", it->second);
  else
    reply.result(kRefused, "key not found").add("value", "unknown");
  answer(task, reply);
}

void Server::get_by_index(std::uint32_t task, const Command& command) {
  const int index = integer_of(command.find("idx"), -1);
  Reply reply(Version::v1, "getbyidx_results");
  if (index >= 0 && static_cast<std::size_t>(index) < values_.size()) {
    const auto it = std::next(values_.begin(), index);
    reply.result(kGood).add("nextidx", index + 1).add("key", it->first).add("val", it->second);
  } else {
    reply.result(-2).add("reason", "no_more_keyvals");
  }
  answer(task, reply);
}

void Server::refuse_name(std::uint32_t task, const Command& command) {
  const std::string name = command.name.substr(0, command.name.find('_')) + "_result";
  answer(task, Reply(Version::v1, name).result(kRefused, "not supported").add("info", "fail"));
}

void Server::refuse_space(std::uint32_t task, const Command& command) {
  answer(task, Reply(Version::v1, command.name == "create_kvs" ? "newkvs" : "kvs_destroyed")
                   .result(kRefused, "not supported"));
}

// One request may come in several commands; only the last of them is answered.
void Server::refuse_spawn(std::uint32_t task, const Command& command) {
  if (command.find("totspawns") != command.find("spawnssofar")) return;
  answer(task, Reply(Version::v1, "spawn_result").result(kRefused, "not supported"));
}

// ---- PMI-2

void Server::full_init(std::uint32_t task, const Command& command) {
  answer(task, reply_to(task, command)
                   .result(kGood)
                   .add("pmi-version", 2)
                   .add("pmi-subversion", 0)
                   .add("rank", rank(task))
                   .add("size", layout_.size())
                   .add("appnum", kNoApplication)
                   .add("debugged", "FALSE")
                   .add("pmiverbose", "FALSE"));
}

void Server::job_attribute(std::uint32_t task, const Command& command) {
  const auto key = command.find("key");
  Reply reply = reply_to(task, command).result(kGood);
  const auto mapping = values_.find(kMapping);
  if (key == "universeSize")
    reply.add("found", "TRUE").add("value", layout_.size());
  else if (key == kMapping && mapping != values_.end())
    reply.add("found", "TRUE").add("value", mapping->second);
  else
    reply.add("found", "FALSE");
  answer(task, reply);
}

void Server::put_2(std::uint32_t task, const Command& command) {
  int rc = kGood;
  const std::string why = put(command, rc);
  answer(task, reply_to(task, command).result(rc, why));
}

void Server::get_2(std::uint32_t task, const Command& command) {
  Reply reply = reply_to(task, command).result(kGood);
  const auto it = values_.find(command.find("key").value_or(""));
  reply.add("found", it == values_.end() ? "FALSE" : "TRUE");
  if (it != values_.end()) reply.add("value", it->second);
  answer(task, reply);
}

void Server::put_node(std::uint32_t task, const Command& command) {
  const auto key = command.find("key"), value = command.find("value");
  Reply reply = reply_to(task, command);
  if (!key || !value || key->empty() || key->size() > kMaxKey || value->size() > kMaxValue)
    return answer(task, reply.result(kWrongArgument, "a key and a value are needed"));
  if (node_bytes_ + key->size() + value->size() > kMaxNode)
    return answer(task, reply.result(kOther, "the tasks of this node have put too much"));
  node_bytes_ += key->size() + value->size();
  node_.insert_or_assign(std::string(*key), std::string(*value));
  answer(task, reply.result(kGood));
  for (std::uint32_t other = 0; other < tasks_.size(); ++other)
    std::erase_if(tasks_[other].waiting, [&](const auto& wait) {
      if (wait.first != *key) return false;
      Reply late(Version::v2, "info-getnodeattr-response");
      if (!wait.second.empty()) late.add("thrid", wait.second);
      answer(other, late.result(kGood).add("found", "TRUE").add("value", *value));
      return true;
    });
}

void Server::get_node(std::uint32_t task, const Command& command) {
  const std::string_view key = command.find("key").value_or("");
  const auto it = node_.find(key);
  auto& waiting = tasks_[task].waiting;
  if (it == node_.end() && command.find("wait") == "TRUE") {
    if (waiting.size() >= kMaxWaiting) return fault(task, "it asks PMI for too much at once");
    waiting.emplace_back(key.substr(0, kMaxKey),
                         command.find("thrid").value_or("").substr(0, kMaxKey));
    return;
  }
  Reply reply = reply_to(task, command).result(kGood);
  reply.add("found", it == node_.end() ? "FALSE" : "TRUE");
  if (it != node_.end()) reply.add("value", it->second);
  answer(task, reply);
}

// Refuses spawn, job-connect, name-publish and every other command.
void Server::refuse_2(std::uint32_t task, const Command& command) {
  Reply reply(Version::v2, command.name.substr(0, kMaxKey) + "-response");
  if (const auto thread = command.find("thrid")) reply.add("thrid", thread->substr(0, kMaxKey));
  answer(task, reply.result(kOther, "not supported"));
}

}  // namespace gantry::pmi2
