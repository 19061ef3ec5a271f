// The options of the section `gate`; see options.h.
#include "config/option_rules.h"

namespace gantry::config {

std::vector<Option> options_of(GateConfig& c) {
  return {
      {"name", &c.name, kByType,
       "What this gate calls itself; two gates of a cluster have two names. Left out = the name of "
       "its host."},
      {"listen",
       &c.listen,
       {Form::address, 0, 0},
       "Where clients reach services by HTTP, without encryption."},
      {"listen_tls",
       &c.listen_tls,
       {Form::address, 0, 0},
       "Where clients reach services by HTTPS, with `certificate`; HTTP/2 is spoken there, too."},
      {"certificate",
       &c.certificate,
       {Form::path_or_none, 0, 0},
       "PEM file with certificate, chain and key, or a directory of such files, of which the "
       "client's name for the server selects one."},
      {"address", &c.address, kByType,
       "How people name the gate, as in https://services.example. Left out = the first address "
       "that it listens on."},
      {"state_dir",
       &c.state_dir,
       {Form::path, 0, 0},
       "Directory for the last table of services and for the files of HAProxy; on a local disk."},
      {"haproxy", &c.haproxy, {Form::path, 0, 0}, "HAProxy's program, of release 2.6 or newer."},
      {"user", &c.user, kByType,
       "User of the operating system that HAProxy becomes, if the gate is root; `none` = it stays "
       "root."},
      {"stop_time",
       &c.stop_time,
       {Form::plain, 0, std::int64_t{86'400} * 1'000'000},
       "When the gate is told to end, how long requests that are under way may still be answered."},
      {"threads", &c.threads, {Form::plain, 1, 64}, "Threads of HAProxy."},
      {"connections",
       &c.connections,
       {Form::plain, 10, 1'000'000},
       "Connections of clients at a time."},
  };
}

}  // namespace gantry::config
