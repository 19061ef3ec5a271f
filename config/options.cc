// The tables of options: name, member, allowed values, meaning.
#include "config/options.h"

#include <algorithm>

#include "config/option_rules.h"

namespace gantry::config {
namespace {

constexpr std::int64_t kMostWeight = 1'000'000'000;

}  // namespace

bool for_users(const Option& option) {
  static constexpr std::string_view kOfJobs[] = {"image_dirs", "writable_paths", "storage"};
  static constexpr std::string_view kInternal[] = {
      "admins",      "metrics_host", "metrics_port", "usage_webhook", "listen_host",
      "listen_port", "gpu_library",  "cuda_library", "mps_control",   "runtimes",
      "login_nodes", "gvisor",       "image_check"};
  const auto among = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), option.name) != std::end(list);
  };
  const bool file = option.rule.form == Form::path || option.rule.form == Form::path_or_none;
  return file ? among(kOfJobs) : !among(kInternal);
}

std::vector<Option> options_of(Config& c) {
  return {{"cluster", &c.cluster, form(Form::word), "Name of the cluster, shown to users."},
          {"licenses", &c.licenses, kByType,
           "Licences of the whole cluster that jobs ask for with --licenses, each as NAME:COUNT. A "
           "job starts when all that it asks for are free."}};
}

std::vector<Option> options_of(ControllerConfig& c) {
  return {
      {"host", &c.host, kByType,
       "Address that the controller listens on and that everyone connects to."},
      {"port", &c.port, between(1, 65535), "TCP port of the controller."},
      {"state_dir", &c.state_dir, form(Form::path),
       "Directory of the job store; on a local disk, mode 0700."},
      {"public_key_file", &c.public_key_file, form(Form::path),
       "The controller's public key (Z85, 40 characters), for clients and nodes."},
      {"secret_key_file", &c.secret_key_file, form(Form::path),
       "The controller's secret key, mode 0600."},
      {"admins", &c.admins, form(Form::word), "Login names with the role of platform admin."},
      {"allow_munge", &c.allow_munge, kByType,
       "Whether a munge credential proves who a client is."},
      {"job_networks", &c.job_networks, kByType,
       "Whether each job has a network of its own: an address on each of its nodes, over which its "
       "parts reach each other, and beside them what its tenant's network profile names. Otherwise "
       "jobs have loopback only, as on nodes that can make no networks: their daemon is not root, "
       "their jobs do not run by crun, or their kernel cannot (`gctl show node` says why). Nodes "
       "reach each other by UDP at the port of their address."},
      {"job_network_transport", &c.job_network_transport, kByType,
       "How packets between the nodes of a job travel. vxlan: in UDP, not encrypted. wireguard: in "
       "UDP, encrypted. routed: as they are, by the machines' own routes; the machines must "
       "forward packets. All nodes need the same, and a change needs nodes without jobs that have "
       "networks."},
      {"job_network_prefix", &c.job_network_prefix, kByType,
       "IPv6 prefix of 48 bits for addresses of jobs, from fd00::/8. It is seen outside of jobs "
       "only with job_network_transport: routed."},
      {"job_network_block", &c.job_network_block, kByType,
       "IPv4 block of 10 bits for addresses of jobs, of which each node has 1,024. It is seen "
       "outside of jobs only with job_network_transport: routed."},
      {"login_nodes", &c.login_nodes, form(Form::node_names),
       "Nodes whose daemon may say who a user of its machine is, as the kernel tells it. Commands "
       "there ask by the socket cli.sock in noded.run_dir, without a credential and an encrypted "
       "connection of their own. Whoever has the key of such a node, and connects from its "
       "address, can act for each ordinary user, so name no compute nodes. Each needs an address. "
       "A node on the controller's own machine may also speak for operators and root; what lasts "
       "needs a credential all the same."},
      {"heartbeat", &c.heartbeat, between(kSecond / 10, 600 * kSecond), "How often nodes report."},
      {"node_timeout", &c.node_timeout, between(kSecond / 2, kDay),
       "Silence after which a node is lost: it gets no new work. At least twice heartbeat."},
      {"lost_node_policy", &c.lost_node_policy, kByType,
       "wait: the jobs of a lost node stay until it returns or an operator declares it dead. "
       "fence: nodes end their own jobs after fence_after of silence, then the controller requeues "
       "them."},
      {"fence_after", &c.fence_after, between(kSecond, 7 * kDay),
       "With lost_node_policy fence: the silence after which a node ends its jobs. Longer than "
       "node_timeout."},
      {"kill_wait", &c.kill_wait, between(0, 3600 * kSecond),
       "Time between SIGTERM and SIGKILL when a job is cancelled or over its limit."},
      {"min_job_age", &c.min_job_age, between(0, 7 * kDay),
       "How long ended jobs stay in the queue listing; accounting keeps them for ever."},
      {"start_timeout", &c.start_timeout, between(kSecond, 3600 * kSecond),
       "A node that does not confirm a start within this time is drained."},
      {"max_requeues", &c.max_requeues, between(0, 1000),
       "Requeues after which a job is held, so that it cannot fail for ever."},
      {"max_jobs", &c.max_jobs, between(1, 100'000'000),
       "Jobs queued and active at the most; an array counts as one."},
      {"max_user_jobs", &c.max_user_jobs, between(1, 100'000'000),
       "Jobs of one user queued and active at the most, array tasks one by one; operators and "
       "administrators have no such limit."},
      {"max_user_bytes", &c.max_user_bytes, bytes(kMiB, std::int64_t{1} << 46),
       "Bytes of scripts, environments and requests that are stored for one user's jobs, until "
       "min_job_age after their end; what several jobs of the user share counts once. Not for "
       "operators and administrators."},
      {"max_user_keys", &c.max_user_keys, between(0, 1'000'000),
       "Keys that one user may register (gctl key); administrators may register more."},
      {"max_user_triggers", &c.max_user_triggers, between(0, 10'000),
       "Triggers of one user who is no operator, with user_triggers."},
      {"max_job_steps", &c.max_job_steps, between(1, 1'000'000),
       "Steps of one job in one run of it."},
      {"max_array_tasks", &c.max_array_tasks, between(1, 1'000'000), "Tasks of one job array."},
      {"max_script_bytes", &c.max_script_bytes, between(1024, 8 * kMiB),
       "Size of a batch script, in bytes."},
      {"backfill_depth", &c.backfill_depth, between(0, 1'000'000),
       "Job classes that the scheduler looks at behind the first one that must wait."},
      {"store_map", &c.store_map, bytes(kMiB, std::int64_t{1} << 46),
       "Address space for the job store when the controller starts, doubled when it is full; the "
       "file on disk is only as large as what is in it."},
      {"store_map_max", &c.store_map_max, bytes(kMiB, std::int64_t{1} << 46),
       "Where that growth ends: with more in the store the controller stops and says so. At least "
       "store_map."},
      {"one_cohort", &c.one_cohort, kByType,
       "Whether tenants that name no cohort are in one together: they borrow what others leave "
       "idle, as far as their quota lines allow it, take back what is their own, and within it get "
       "room from jobs of lower classes. Otherwise each has what it owns, and nothing is taken for "
       "it."},
      {"balance", &c.balance, between(0, 365 * kDay),
       "Tenants that borrow: a job may have to leave for one of its own class of a tenant that "
       "borrows less, if it has run for no longer than this since its start or its last "
       "checkpoint; 0 = no job has to, the shares even out as jobs end."},
      {"oldest_first_after", &c.oldest_first_after, between(0, 365 * kDay),
       "A job that has waited for so long goes before all others of its priority class, whether "
       "its tenant borrows or not: nothing else delays it, and no other tenant's claim takes what "
       "is reserved for it. After twice the time it goes before those, and so on, but never before "
       "a class that preempts. A class with an age_step of its own goes by that; 0 = the order is "
       "that of quota and shares, however long a job waits."},
      {"keep_apart", &c.keep_apart, between(0, 365 * kDay),
       "Jobs of one user and name that have held up others on a node (docs/neighbours.md) are kept "
       "off the nodes of those for so long, where there is another place for them; 0 = they are "
       "not."},
      {"fair_share_half_life", &c.fair_share_half_life, between(kSecond, 36'500 * kDay),
       "After this time past usage counts half in the fair share of projects and users."},
      {"priority_weight_age", &c.priority_weight_age, between(0, kMostWeight),
       "Weighted multifactor priority, as Slurm has it: points of a job that has waited for "
       "priority_max_age. With any weight above 0 the sum of the weighted factors orders the jobs "
       "of a tenant or partition, instead of the ranks of classes that do not preempt and of the "
       "fair share."},
      {"priority_weight_fairshare", &c.priority_weight_fairshare, between(0, kMostWeight),
       "Points of a user who has used nothing of the user's share; 2^(-usage/share) of it else."},
      {"priority_weight_job_size", &c.priority_weight_job_size, between(0, kMostWeight),
       "Points of a job as large as the whole cluster, by cores."},
      {"priority_weight_partition", &c.priority_weight_partition, between(0, kMostWeight),
       "Points of the partition with the highest priority; others in proportion."},
      {"priority_weight_class", &c.priority_weight_class, between(0, kMostWeight),
       "Points of the highest priority class; others in proportion to their value."},
      {"priority_max_age", &c.priority_max_age, between(kSecond, 36'500 * kDay),
       "Waiting time after which age counts in full."},
      {"priority_period", &c.priority_period, between(kSecond, kDay),
       "Time between two reckonings of the priority of all waiting jobs."},
      {"metrics_host", &c.metrics_host, kByType,
       "Address of this machine that metrics are served on."},
      {"metrics_port", &c.metrics_port, between(0, 65535),
       "TCP port of HTTP GET /metrics, for Prometheus, and /usage; 0 = none."},
      {"metrics_tokens", &c.metrics_tokens, form(Form::path),
       "File, mode 0600, with a line `TENANT TOKEN` for each who may ask there: a token shows its "
       "tenant's, that of `*` everything."},
      {"max_token_lifetime", &c.max_token_lifetime, between(kSecond, 36'500 * kDay),
       "How long a token (gctl token, scontrol token) may be valid at the most."},
      {"max_user_connections", &c.max_user_connections, between(0, 1'000'000),
       "Connections that one user may have to the controller at a time; 0 = no limit. Root, "
       "administrators and operators have none."},
      {"max_user_requests", &c.max_user_requests, between(0, 1'000'000),
       "Requests per second of one user, from all connections and out of all jobs; ten seconds' "
       "worth may come at once, and one that takes the controller long counts as several, so that "
       "one user has a quarter of its time. What is too much is refused, and the commands ask "
       "again; 0 = no limit. Root, administrators and operators have none."},
      {"user_triggers", &c.user_triggers, kByType,
       "Whether users may set triggers of their own jobs (strigger). Their programs run on the "
       "controller's machine, as the user, in no container; operators always may."},
      {"mail_program", &c.mail_program, form(Form::path_or_none),
       "Program that takes mail as sendmail does (`-i -- ADDRESS...`, the letter on its input), "
       "for --mail-type; left out = no mail is sent, and that option is refused."},
      {"usage_events", &c.usage_events, form(Form::path_or_none),
       "File that a line of JSON is appended to for each start and end of a job; left out = none."},
      {"usage_webhook", &c.usage_webhook, kByType,
       "http://HOST:PORT/PATH that the lines of usage_events are sent to; left out = nowhere."},
      {"gates", &c.gates, form(Form::word),
       "Login names as which gantry-gate may connect, beside operators: gates learn of all "
       "services, and say what they need."},
      {"service_port", &c.service_port, between(1024, 60'000),
       "The first of the ports on which nodes take connections for replicas of services; each "
       "replica on a node has the next one."},
      {"policy_hook", &c.policy_hook, form(Form::path_or_none),
       "Program, or a socket on which a service listens, that is asked about each job that is "
       "submitted, before its policies: it reads the job as JSON and answers with JSON "
       "(docs/policies.md). A program runs as the controller's user, beside its work. Left out = "
       "none."},
      {"policy_hook_timeout", &c.policy_hook_timeout, between(kSecond / 10, 60 * kSecond),
       "How long policy_hook may take for one job, waiting included."},
      {"policy_hook_failure", &c.policy_hook_failure, kByType,
       "What becomes of a job if policy_hook fails, takes too long or gives no sound answer. "
       "refuse: it is refused. accept: it is taken, and the log says so."},
      {"metrics_labels", &c.metrics_labels, kByType,
       "Keys of labels, at most 4, by whose values /metrics counts jobs and what they hold. Of "
       "each key the 50 values with most jobs are shown, the others together as \"other\"."},
      {"report_labels", &c.report_labels, kByType,
       "Keys of labels, at most 4, by whose values the ledger keeps apart what jobs cost: for "
       "greport -b job-label:KEY, and the tags of --focus. It counts for jobs that start from then "
       "on. A tenant has at most 1,000 combinations; later ones are \"other\"."},
      {"identity_issuer", &c.identity_issuer, kByType,
       "https://HOST[/PATH] that is the issuer of jobs' identity tokens (--identity), and below "
       "which those who check them read /.well-known/openid-configuration and "
       "/.well-known/jwks.json: metrics_port serves both without a token, usually behind a proxy "
       "with TLS. Left out = no tokens are made, and that option is refused."},
      {"identity_lifetime", &c.identity_lifetime, between(300 * kSecond, kDay),
       "How long an identity token is valid; a node has a new one before it ends."},
      {"identity_key_time", &c.identity_key_time, between(2 * kDay, 365 * kDay),
       "How long one key signs identity tokens. The next one is published a day before it signs."},
      {"oidc_issuer", &c.oidc_issuer, kByType,
       "Issuer (the claim `iss`, letter by letter) whose signed tokens are credentials of people, "
       "as those of gctl token are (docs/policies.md). Left out = no other tokens count."},
      {"oidc_audience", &c.oidc_audience, kByType,
       "What the claim `aud` of such a token has to name: this cluster."},
      {"oidc_keys", &c.oidc_keys, form(Form::path_or_none),
       "File with the issuer's public keys as a JSON Web Key Set, which only root or the "
       "controller's user may write. It is read again when it has changed; nothing is fetched."},
      {"oidc_user_claim", &c.oidc_user_claim, form(Form::word),
       "The claim that has the login name. It must be one that people cannot change themselves."},
      {"oidc_groups_claim", &c.oidc_groups_claim, kByType,
       "The claim that has the groups, to which roles are granted as `oidc:GROUP`; \"\" = none."},
  };
}

std::vector<Option> options_of(NodeConfig& c) {
  return {
      {"name", &c.name, form(Form::node_names),
       "Name, or a range such as gpu[01-04] that stands for several equal nodes.", true},
      {"address", &c.address, form(Form::address),
       "HOST:PORT where the node is reached for steps; left out = as the node registers."},
      {"cpus", &c.cpus, between(1, 4096), "Logical CPUs for jobs.", true},
      {"cpu_ids", &c.cpu_ids, form(Form::cpu_list),
       "Which logical CPUs, as 0-3,8; left out = 0 to cpus-1."},
      {"memory", &c.memory, bytes(kMiB, std::int64_t{1} << 50), "Memory for jobs.", true},
      {"scratch", &c.scratch, bytes(0, std::int64_t{1} << 60),
       "Node-local disk for jobs (--tmp): the directory scratch in the node's state_dir, where a "
       "disk of its own may be mounted."},
      {"gpus", &c.gpus, between(0, 64), "GPUs for jobs."},
      {"gpu_model", &c.gpu_model, form(Form::word),
       "Model of its GPUs, in lower case as a100 or h100; quota may speak of it."},
      {"gpu_sharing", &c.gpu_sharing, kByType,
       "Whether jobs of one tenant may share a GPU (--gpus=0.5, --gres=shard:N). mps: each tenant "
       "and GPU has an MPS daemon, each job its part of compute and memory. time-slicing: by the "
       "driver's time slices, without limits inside of the GPU. Tenants never share one."},
      {"gpu_shards", &c.gpu_shards, between(0, 1000),
       "Parts that --gres=shard:N counts, of each GPU; 0 = no such request is taken."},
      {"gres", &c.gres, kByType,
       "Other resources that jobs ask for with --gres=NAME:N, each as NAME:COUNT or with a device "
       "file each, as fpga:/dev/xfpga[0-3]. At most 8 different names in a cluster."},
      {"mig_by_hand", &c.mig_by_hand, kByType,
       "The site cuts its GPUs into MIG slices itself: jobs get those that are found, and none are "
       "made or destroyed."},
      {"features", &c.features, form(Form::word), "Words that jobs may ask for with --constraint."},
  };
}

std::vector<Option> options_of(PartitionConfig& c) {
  return {
      {"name", &c.name, form(Form::word), "Name, as users give it to --partition.", true},
      {"nodes", &c.nodes, form(Form::node_names),
       "Node names, ranges allowed; `all` = every node of the cluster.", true},
      {"default", &c.is_default, kByType, "Taken by jobs that name no partition; one has it."},
      {"up", &c.up, kByType, "A partition that is down accepts jobs and starts none."},
      {"accepts_jobs", &c.accepts_jobs, kByType,
       "A partition that accepts no jobs still starts those that wait in it."},
      {"priority", &c.priority, between(0, 65535), "Higher ones are considered first."},
      {"default_time", &c.default_time, between(kSecond, 36'500 * kDay),
       "Time limit of jobs that give none; left out = max_time."},
      {"max_time", &c.max_time, between(kSecond, 36'500 * kDay),
       "Longest time limit; left out or `unlimited` = any."},
      {"max_nodes", &c.max_nodes, between(1, 65536), "Nodes of one job at the most."},
      {"min_nodes", &c.min_nodes, between(1, 65536), "Nodes of one job at the least."},
      {"default_memory_per_cpu", &c.default_memory_per_cpu, bytes(kMiB, std::int64_t{1} << 50),
       "Memory of jobs that ask for none; left out = an equal part of the node's."},
      {"allow_host_network", &c.allow_host_network, kByType,
       "Whether jobs may use --network=host; otherwise they have loopback only."},
      {"host_network_by_default", &c.host_network_by_default, kByType,
       "Jobs that say nothing of --network have the host's: for scripts that come from clusters "
       "where every job has it. Needs allow_host_network."},
      {"exclusive_nodes", &c.exclusive_nodes, kByType, "Every job gets whole nodes."},
      {"admins_only", &c.admins_only, kByType, "Administrators alone submit jobs to it."},
      {"reservation_only", &c.reservation_only, kByType,
       "Every job in it has to name a reservation."},
      {"qos", &c.qos, form(Form::word),
       "A priority class (QOS) whose limits the jobs in it keep, whatever class they have."},
      {"billing_weights", &c.billing_weights, kByType,
       "What a job in it counts in units of billing, as CPU=1.0,Mem=0.25G,GRES/gpu=2.0; left out = "
       "one for each core."},
      {"allow_accounts", &c.allow_accounts, form(Form::account),
       "Tenants, projects of one tenant (TENANT/PROJECT) and names of projects (-A) whose jobs may "
       "use it; a tenant stands for all its projects. Left out = all."},
      {"deny_accounts", &c.deny_accounts, form(Form::account),
       "Like allow_accounts, for jobs that may not use it; not together with allow_accounts. A "
       "tenant's admin can make other "
       "projects: name the tenant to keep all its jobs out."},
      {"allow_groups", &c.allow_groups, kByType,
       "Groups of the operating system whose members may use it, besides administrators. Left out "
       "= all."},
      {"allow_qos", &c.allow_qos, form(Form::word),
       "Priority classes that jobs in it may have. Left out = all."},
      {"deny_qos", &c.deny_qos, form(Form::word),
       "Priority classes that jobs in it may not have; not together with allow_qos."},
  };
}

}  // namespace gantry::config
