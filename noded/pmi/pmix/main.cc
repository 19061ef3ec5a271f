// gantry-pmix NAMESPACE NODE NODES TASKS: the PMIx server of one step on one node, started by
// gantry-shim beside the step's tasks and with no more rights than they have. NODE is the index of
// this node in NODES, a comma list in the order of ranks; TASKS says how many tasks each node has.
// Descriptor 4 leads to the shim (noded/pmi/wire.h); when it closes, the step is over.
//
// This is a separate program so that neither gantry-noded nor gantry-shim needs libpmix, and so
// that what tasks send is parsed inside their container.
#include <pmix.h>
#include <pmix_server.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "noded/pmi/collect.h"
#include "noded/pmi/wire.h"

namespace gantry::pmix {

// The server side of libpmix, as far as a step needs it: a namespace of processes over nodes, what
// each node's processes are told about it, and the calls that need other nodes.

// How the server talks to the shim. The functions are called on threads of libpmix as well.
struct Out {
  std::function<void(std::uint32_t node, std::string_view bytes)> peer;
  std::function<void(std::uint32_t rank, int status, const std::string& why)> abort;
};

// Returns "" or why it cannot serve. libpmix allows only one server per process.
std::string start_server(const Layout& layout, const std::string& directory, Out out);
// Variables ("NAME=value") for the task with this number on this node.
std::vector<std::string> client_environment(const Layout& layout, std::uint32_t task);
void from_peer(std::uint32_t node, std::string_view bytes);
void stop_server();

namespace {

// There is one global server, because libpmix's callbacks have no context argument: a process
// serves one step.
struct Server {
  Layout layout;
  Out out;
  std::mutex mutex;  // guards `collect`, which threads of libpmix and our own use
  std::unique_ptr<Collect> collect;
};
Server* the_server = nullptr;

// ---- waiting for calls that libpmix answers on its own thread

struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool there = false;
  pmix_status_t status = PMIX_SUCCESS;
  pmix_status_t wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return there; });
    return status;
  }
};

void answered(pmix_status_t status, void* data) {
  auto* answer = static_cast<Answer*>(data);
  const std::lock_guard lock(answer->mutex);
  answer->status = status;
  answer->there = true;
  answer->changed.notify_all();
}

template <class Call>
pmix_status_t and_wait(Call&& call) {
  Answer answer;
  const pmix_status_t status = call(&answer);
  if (status == PMIX_OPERATION_SUCCEEDED) return PMIX_SUCCESS;
  return status == PMIX_SUCCESS ? answer.wait() : status;
}

// ---- calls that need other nodes

void free_data(void* data) {
  delete static_cast<std::string*>(data);
}

// Passes data to libpmix in a copy, which libpmix frees.
Collect::Done give_to(pmix_modex_cbfunc_t function, void* data) {
  return [function, data](bool good, const std::string& bytes) {
    auto* kept = new std::string(bytes);
    function(good ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, kept->data(), kept->size(), data, free_data,
             kept);
  };
}

pmix_status_t fence(const pmix_proc_t procs[], size_t count, const pmix_info_t[], size_t,
                    char* data, size_t size, pmix_modex_cbfunc_t function, void* context) {
  Server& s = *the_server;
  std::set<std::uint32_t> among;
  std::string who;
  for (size_t i = 0; i < count; ++i) {
    if (std::strncmp(procs[i].nspace, s.layout.name.c_str(), PMIX_MAX_NSLEN) != 0)
      return PMIX_ERR_NOT_SUPPORTED;
    if (procs[i].rank == PMIX_RANK_WILDCARD) {
      who += "*,";
      for (std::uint32_t n = 0; n < s.layout.nodes.size(); ++n) among.insert(n);
    } else if (procs[i].rank < s.layout.size()) {
      who += std::to_string(procs[i].rank) + ",";
      among.insert(s.layout.node_of(procs[i].rank));
    } else {
      return PMIX_ERR_BAD_PARAM;
    }
  }
  const std::lock_guard lock(s.mutex);
  s.collect->gather(who, among,
                    std::string(data == nullptr ? "" : data, data == nullptr ? 0 : size),
                    give_to(function, context));
  return PMIX_SUCCESS;
}

pmix_status_t direct_modex(const pmix_proc_t* proc, const pmix_info_t[], size_t,
                           pmix_modex_cbfunc_t function, void* context) {
  Server& s = *the_server;
  if (std::strncmp(proc->nspace, s.layout.name.c_str(), PMIX_MAX_NSLEN) != 0 ||
      proc->rank >= s.layout.size())
    return PMIX_ERR_NOT_FOUND;
  const std::lock_guard lock(s.mutex);
  s.collect->ask(s.layout.node_of(proc->rank), proc->rank, give_to(function, context));
  return PMIX_SUCCESS;
}

struct Question {
  std::uint32_t node, number;
};

void have_data(pmix_status_t status, char* data, size_t size, void* context) {
  const std::unique_ptr<Question> question(static_cast<Question*>(context));
  const std::lock_guard lock(the_server->mutex);
  const bool good = status == PMIX_SUCCESS && data != nullptr;
  the_server->collect->answer(question->node, question->number, good,
                              good ? std::string_view(data, size) : std::string_view());
}

// The caller holds `mutex`; the answer comes on a thread of libpmix.
void asked_for(std::uint32_t node, std::uint32_t number, std::uint32_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, the_server->layout.name.c_str(), rank);
  auto question = std::make_unique<Question>(Question{node, number});
  if (PMIx_server_dmodex_request(&proc, have_data, question.get()) == PMIX_SUCCESS)
    (void)question.release();
  else
    the_server->collect->answer(node, number, false, "");
}

pmix_status_t aborted(const pmix_proc_t* proc, void*, int status, const char message[],
                      pmix_proc_t[], size_t, pmix_op_cbfunc_t function, void* context) {
  the_server->out.abort(proc->rank, status, message == nullptr ? "" : message);
  if (function != nullptr) function(PMIX_SUCCESS, context);
  return PMIX_SUCCESS;
}

pmix_status_t connected(const pmix_proc_t*, void*, pmix_info_t[], size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}
pmix_status_t finalized(const pmix_proc_t*, void*, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_server_module_t server_module() {
  pmix_server_module_t module{};
  module.client_connected2 = connected;
  module.client_finalized = finalized;
  module.abort = aborted;
  module.fence_nb = fence;
  module.direct_modex = direct_modex;
  return module;
}

// ---- what processes are told

class Infos {
 public:
  template <class T>
  void add(const char* key, T value, pmix_data_type_t type) {
    PMIX_INFO_LOAD(&next(key), key, &value, type);
  }
  void add(const char* key, const std::string& text) {
    PMIX_INFO_LOAD(&next(key), key, text.c_str(), PMIX_STRING);
  }
  void add_regex(const char* key, const char* regex) {
    PMIX_INFO_LOAD(&next(key), key, regex, PMIX_REGEX);
  }
  void add_array(const char* key, Infos&& infos) {
    pmix_data_array_t array{PMIX_INFO, infos.all_.size(), infos.all_.data()};
    PMIX_INFO_LOAD(&next(key), key, &array, PMIX_DATA_ARRAY);
  }
  pmix_info_t* data() { return all_.data(); }
  [[nodiscard]] size_t size() const { return all_.size(); }

 private:
  pmix_info_t& next(const char*) {
    all_.emplace_back();
    PMIX_INFO_CONSTRUCT(&all_.back());
    return all_.back();
  }
  // libpmix's data in them is never freed: the process lives only as long as the step.
  std::vector<pmix_info_t> all_;
};

Infos process_info(const Layout& layout, std::uint32_t node, std::uint32_t rank) {
  const auto local = static_cast<std::uint16_t>(rank - layout.first_rank(node));
  Infos info;
  info.add(PMIX_RANK, rank, PMIX_PROC_RANK);
  info.add(PMIX_APPNUM, std::uint32_t{0}, PMIX_UINT32);
  info.add(PMIX_APPLDR, std::uint32_t{0}, PMIX_PROC_RANK);
  info.add(PMIX_GLOBAL_RANK, rank, PMIX_PROC_RANK);
  info.add(PMIX_APP_RANK, rank, PMIX_PROC_RANK);
  info.add(PMIX_LOCAL_RANK, local, PMIX_UINT16);
  info.add(PMIX_NODE_RANK, local, PMIX_UINT16);
  info.add(PMIX_NODEID, node, PMIX_UINT32);
  info.add(PMIX_HOSTNAME, layout.nodes[node]);
  return info;
}

std::string join(const std::vector<std::string>& words, char between) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : std::string(1, between)) + word;
  return out;
}

std::string ranks_of(const Layout& layout, std::uint32_t node) {
  std::vector<std::string> ranks;
  for (std::uint32_t i = 0; i < layout.tasks[node]; ++i)
    ranks.push_back(std::to_string(layout.first_rank(node) + i));
  return join(ranks, ',');
}

void add_maps(Infos& info, const Layout& layout) {
  std::vector<std::string> ranks;
  for (std::uint32_t n = 0; n < layout.nodes.size(); ++n) ranks.push_back(ranks_of(layout, n));
  char* regex = nullptr;
  if (PMIx_generate_regex(join(layout.nodes, ',').c_str(), &regex) == PMIX_SUCCESS)
    info.add_regex(PMIX_NODE_MAP, regex);
  if (PMIx_generate_ppn(join(ranks, ';').c_str(), &regex) == PMIX_SUCCESS)
    info.add_regex(PMIX_PROC_MAP, regex);
}

Infos job_info(const Layout& layout) {
  const std::uint32_t here = layout.tasks[layout.self];
  Infos info;
  info.add(PMIX_JOBID, layout.name);
  info.add(PMIX_UNIV_SIZE, layout.size(), PMIX_UINT32);
  info.add(PMIX_JOB_SIZE, layout.size(), PMIX_UINT32);
  info.add(PMIX_MAX_PROCS, layout.size(), PMIX_UINT32);
  info.add(PMIX_JOB_NUM_APPS, std::uint32_t{1}, PMIX_UINT32);
  info.add(PMIX_APP_SIZE, layout.size(), PMIX_UINT32);
  info.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(layout.nodes.size()), PMIX_UINT32);
  info.add(PMIX_LOCAL_SIZE, here, PMIX_UINT32);
  info.add(PMIX_NODE_SIZE, here, PMIX_UINT32);
  info.add(PMIX_NODEID, layout.self, PMIX_UINT32);
  info.add(PMIX_HOSTNAME, layout.nodes[layout.self]);
  info.add(PMIX_LOCAL_PEERS, ranks_of(layout, layout.self));
  info.add(PMIX_LOCALLDR, layout.first_rank(layout.self), PMIX_PROC_RANK);
  info.add(PMIX_TMPDIR, std::string("/tmp"));
  add_maps(info, layout);
  for (std::uint32_t n = 0; n < layout.nodes.size(); ++n)
    for (std::uint32_t i = 0; i < layout.tasks[n]; ++i)
      info.add_array(PMIX_PROC_DATA, process_info(layout, n, layout.first_rank(n) + i));
  return info;
}

std::string refused(const char* what, pmix_status_t status) {
  return std::string(what) + ": " + PMIx_Error_string(status);
}

}  // namespace

std::string start_server(const Layout& layout, const std::string& directory, Out out) {
  static Server server;
  server.layout = layout;
  server.out = std::move(out);
  server.collect = std::make_unique<Collect>(
      layout.self, static_cast<std::uint32_t>(layout.nodes.size()), server.out.peer, asked_for);
  the_server = &server;
  static pmix_server_module_t module = server_module();
  Infos how;
  how.add(PMIX_SERVER_TMPDIR, directory);
  how.add(PMIX_SYSTEM_TMPDIR, directory);
  how.add(PMIX_HOSTNAME, layout.nodes[layout.self]);
  if (const auto status = PMIx_server_init(&module, how.data(), how.size()); status != PMIX_SUCCESS)
    return refused("PMIx_server_init", status);
  Infos info = job_info(layout);
  auto status = and_wait([&](Answer* answer) {
    return PMIx_server_register_nspace(layout.name.c_str(),
                                       static_cast<int>(layout.tasks[layout.self]), info.data(),
                                       info.size(), answered, answer);
  });
  if (status != PMIX_SUCCESS) return refused("PMIx_server_register_nspace", status);
  for (std::uint32_t i = 0; i < layout.tasks[layout.self]; ++i) {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, layout.name.c_str(), layout.first_rank(layout.self) + i);
    status = and_wait([&](Answer* answer) {
      return PMIx_server_register_client(&proc, ::getuid(), ::getgid(), nullptr, answered, answer);
    });
    if (status != PMIX_SUCCESS) return refused("PMIx_server_register_client", status);
  }
  return "";
}

std::vector<std::string> client_environment(const Layout& layout, std::uint32_t task) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, layout.name.c_str(), layout.first_rank(layout.self) + task);
  char** env = nullptr;
  std::vector<std::string> out;
  if (PMIx_server_setup_fork(&proc, &env) != PMIX_SUCCESS) return out;
  for (char** one = env; one != nullptr && *one != nullptr; ++one) out.emplace_back(*one);
  return out;
}

void from_peer(std::uint32_t node, std::string_view bytes) {
  const std::lock_guard lock(the_server->mutex);
  if (!the_server->collect->receive(node, bytes))
    the_server->out.abort(0, 1, "the PMIx servers of the step do not understand each other");
}

void stop_server() {
  PMIx_server_finalize();
}

namespace {

void hear(std::string& in) {
  std::size_t at = 0;
  Frame frame;
  while (take(in, at, frame) == Taken::frame)
    if (frame.word == Word::peer) from_peer(frame.number, frame.bytes);
  in.erase(0, at);
}

void serve() {
  std::string in;
  char buffer[32 << 10];
  for (;;) {
    const ssize_t n = ::read(kSocket, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    in.append(buffer, static_cast<std::size_t>(n));
    hear(in);
  }
}

int run(int argc, char** argv) {
  const auto read = read_layout(argc, argv);
  if (!read) {
    std::fputs("usage: gantry-pmix NAMESPACE NODE NODES TASKS, started by gantry-shim\n", stderr);
    return 2;
  }
  const Layout& layout = *read;
  const std::string directory = "/tmp/." + layout.name + "." + argv[2];
  std::error_code ignored;
  std::filesystem::create_directory(directory, ignored);
  const std::string error = start_server(layout, directory, {say_to_peer, say_abort});
  if (error.empty()) {
    for (std::uint32_t task = 0; task < layout.tasks[layout.self]; ++task) {
      std::string bytes;
      for (const auto& word : client_environment(layout, task)) bytes += word + '\0';
      say(Word::environment, task, bytes);
    }
    say(Word::ready, 0, "");
    serve();
    stop_server();
  } else {
    say(Word::failed, 0, error);
  }
  std::filesystem::remove_all(directory, ignored);
  return error.empty() ? 0 : 1;
}

}  // namespace
}  // namespace gantry::pmix

int main(int argc, char** argv) {
  // This program runs with the job's ids. The job's programs must not impersonate it towards the
  // shim, so they must not be able to trace it.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return gantry::pmix::run(argc, argv);
}
