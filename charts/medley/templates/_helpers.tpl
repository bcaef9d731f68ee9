{{/* Names. */}}
{{- define "medley.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "medley.operator.name" -}}{{ include "medley.fullname" . }}-operator{{- end -}}
{{- define "medley.scheduler.name" -}}{{ include "medley.fullname" . }}-scheduler{{- end -}}

{{/* Names of objects without a namespace. Two releases that each watch a namespace may have the same name. */}}
{{- define "medley.cluster.name" -}}
{{- if .Values.watchNamespace -}}
{{- printf "%s-%s" (include "medley.fullname" .) .Release.Namespace -}}
{{- else -}}
{{- include "medley.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "medley.operator.account" -}}
{{- if .Values.operator.serviceAccount.name -}}{{ .Values.operator.serviceAccount.name }}
{{- else if .Values.operator.serviceAccount.create -}}{{ include "medley.operator.name" . }}
{{- else -}}{{ fail "operator.serviceAccount.name is needed where operator.serviceAccount.create is false" }}
{{- end -}}
{{- end -}}

{{- define "medley.scheduler.account" -}}
{{- if .Values.scheduler.serviceAccount.name -}}{{ .Values.scheduler.serviceAccount.name }}
{{- else if .Values.scheduler.serviceAccount.create -}}{{ include "medley.scheduler.name" . }}
{{- else -}}default
{{- end -}}
{{- end -}}

{{- define "medley.priorityClass" -}}
{{- if .Values.priorityClass.name -}}{{ .Values.priorityClass.name }}
{{- else if .Values.priorityClass.create -}}{{ include "medley.cluster.name" . }}-control-plane
{{- end -}}
{{- end -}}

{{/* Labels: include "medley.labels" (list . "operator"). The first three select, and never change. */}}
{{- define "medley.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: medley-{{ index . 1 }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of pods. They contain nothing that changes with the chart alone, because a change of labels replaces the pods. */}}
{{- define "medley.podLabels" -}}
{{- $ := index . 0 -}}
{{ include "medley.selector" . }}
app.kubernetes.io/part-of: medley
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "medley.labels" -}}
{{- $ := index . 0 -}}
{{ include "medley.selector" . }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: medley
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The operator's name is part of the labels by which a job's NetworkPolicy selects it (operator/builders). */}}

{{/* include "medley.image" (list . .Values.operator.image) */}}
{{- define "medley.image" -}}
{{- $ := index . 0 -}}{{- $image := index . 1 -}}
{{- $where := printf "%s/%s" (trimSuffix "/" $.Values.image.registry) $image.name -}}
{{- if $image.digest -}}{{ $where }}@{{ $image.digest }}
{{- else -}}{{ $where }}:{{ $image.tag | default $.Values.image.tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Address of the scheduling service for the operator. */}}
{{- define "medley.scheduler.address" -}}
{{- if .Values.scheduler.enabled -}}
{{ include "medley.scheduler.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.scheduler.grpcPort }}
{{- else -}}
{{ required "scheduler.address is needed where scheduler.enabled is false" .Values.scheduler.address }}
{{- end -}}
{{- end -}}

{{- define "medley.scheduler.tokenSecret" -}}
{{ .Values.scheduler.token.existingSecret | default (printf "%s-token" (include "medley.scheduler.name" .)) }}
{{- end -}}

{{- define "medley.scheduler.tlsSecret" -}}
{{- if eq .Values.scheduler.tls.mode "existingSecret" -}}
{{ required "scheduler.tls.existingSecret is needed for scheduler.tls.mode existingSecret" .Values.scheduler.tls.existingSecret }}
{{- else -}}
{{ include "medley.scheduler.name" . }}-tls
{{- end -}}
{{- end -}}

{{/* The Secret with the CA that signs the scheduler's certificate in mode generated. */}}
{{- define "medley.scheduler.caSecret" -}}
{{ .Values.scheduler.tls.caSecret | default (printf "%s-ca" (include "medley.scheduler.name" .)) }}
{{- end -}}

{{/* The Secret whose ca.crt the scheduler's clients trust. */}}
{{- define "medley.scheduler.trustSecret" -}}
{{- if eq (include "medley.scheduler.tlsMode" .) "generated" -}}
{{ include "medley.scheduler.caSecret" . }}
{{- else -}}
{{ include "medley.scheduler.tlsSecret" . }}
{{- end -}}
{{- end -}}

{{/* The source of the certificate: mode auto uses cert-manager where its controller runs, but keeps a CA that helm has made. */}}
{{- define "medley.scheduler.tlsMode" -}}
{{- if ne .Values.scheduler.tls.mode "auto" -}}
{{- .Values.scheduler.tls.mode -}}
{{- else -}}
{{- $made := lookup "v1" "Secret" .Release.Namespace (include "medley.scheduler.caSecret" .) -}}
{{- $runs := false -}}
{{- if and (not $made) (.Capabilities.APIVersions.Has "cert-manager.io/v1/Certificate") -}}
{{- $runs = lookup "cert-manager.io/v1" "Certificate" .Release.Namespace (include "medley.scheduler.name" .) | empty | not -}}
{{- range (lookup "apps/v1" "Deployment" "" "" | default dict).items -}}
{{- if eq (dig "metadata" "labels" "app.kubernetes.io/name" "" .) "cert-manager" -}}{{- $runs = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $runs -}}certManager{{- else -}}generated{{- end -}}
{{- end -}}
{{- end -}}

{{- define "medley.scheduler.hasTls" -}}
{{- if ne .Values.scheduler.tls.mode "disabled" -}}true{{- end -}}
{{- end -}}

{{/* Names in the scheduler's certificate. */}}
{{- define "medley.scheduler.dnsNames" -}}
{{- $name := include "medley.scheduler.name" . -}}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) "localhost" -}}
{{- toJson (concat $names .Values.scheduler.tls.extraNames | uniq) -}}
{{- end -}}

{{/* Generated once and then kept: the data of the Secret in the cluster, or new data. All templates of a rendering get the same
answer, so that checksums match what is written. */}}
{{/* Key of the operator's own token in the Secret; empty: it has none. */}}
{{- define "medley.scheduler.operatorKey" -}}
{{- $token := .Values.scheduler.token -}}
{{- $token.operatorKey | default (ternary "" "operator-token" (not (empty $token.existingSecret))) -}}
{{- end -}}

{{/* Key of the token that the operator sends: its own, else that of every client. */}}
{{- define "medley.operator.tokenKey" -}}
{{- include "medley.scheduler.operatorKey" . | default .Values.scheduler.token.key -}}
{{- end -}}

{{/* The data of the Secret of tokens, which upgrades keep. */}}
{{- define "medley.generated.tokens" -}}
{{- if not (hasKey .Values "_tokens") -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "medley.scheduler.tokenSecret" .) | default dict -}}
{{- $tokens := dict -}}
{{- range list .Values.scheduler.token.key (include "medley.scheduler.operatorKey" .) -}}
{{- $_ := set $tokens . (dig "data" . "" $there | default (randAlphaNum 48 | b64enc)) -}}
{{- end -}}
{{- $_ := set .Values "_tokens" $tokens -}}
{{- end -}}
{{- toJson (index .Values "_tokens") -}}
{{- end -}}

{{- define "medley.metrics.tokenSecret" -}}
{{ .Values.metrics.token.existingSecret | default (printf "%s-metrics-token" (include "medley.operator.name" .)) }}
{{- end -}}

{{/* The data of the Secret with the tokens of those who read metrics, which upgrades keep. */}}
{{- define "medley.generated.metricsTokens" -}}
{{- if not (hasKey .Values "_metricsTokens") -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "medley.metrics.tokenSecret" .) | default dict -}}
{{- $tokens := dict -}}
{{- range list .Values.metrics.token.key .Values.metrics.token.jobsKey -}}
{{- $_ := set $tokens . (dig "data" . "" $there | default (randAlphaNum 48 | b64enc)) -}}
{{- end -}}
{{- $_ := set .Values "_metricsTokens" $tokens -}}
{{- end -}}
{{- toJson (index .Values "_metricsTokens") -}}
{{- end -}}

{{- define "medley.generated.ca" -}}
{{- if not (hasKey .Values "_ca") -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "medley.scheduler.caSecret" .) | default dict -}}
{{- if hasKey ($there.data | default dict) "ca.key" -}}
{{- $_ := set .Values "_ca" (pick $there.data "ca.crt" "ca.key") -}}
{{- else -}}
{{- $ca := genCA (printf "%s-ca" (include "medley.scheduler.name" .)) 3650 -}}
{{- $_ := set .Values "_ca" (dict "ca.crt" ($ca.Cert | b64enc) "ca.key" ($ca.Key | b64enc)) -}}
{{- end -}}
{{- end -}}
{{- toJson (index .Values "_ca") -}}
{{- end -}}

{{/* A program reads its Secrets when it starts, so a new Secret must restart it. */}}
{{- define "medley.secrets.checksum" -}}
{{- $parts := list -}}
{{- if and .Values.metrics.token.enabled (not .Values.metrics.token.existingSecret) -}}
{{- $parts = append $parts (include "medley.generated.metricsTokens" .) -}}
{{- end -}}
{{- if .Values.scheduler.enabled -}}
{{- if not .Values.scheduler.token.existingSecret -}}{{- $parts = append $parts (include "medley.generated.tokens" .) -}}{{- end -}}
{{- if and (eq (include "medley.scheduler.tlsMode" .) "generated") (not .Values.scheduler.tls.caSecret) -}}
{{- $parts = append $parts (get (include "medley.generated.ca" . | fromJson) "ca.crt") -}}
{{- end -}}
{{- end -}}
{{- join "," $parts | sha256sum -}}
{{- end -}}

{{/* The securityContext of every container. */}}
{{- define "medley.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Scheduling of a control plane pod: include "medley.placement" (list . "operator" .Values.operator) */}}
{{- define "medley.placement" -}}
{{- $ := index . 0 -}}{{- $part := index . 1 -}}{{- $values := index . 2 -}}
securityContext: {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- with include "medley.priorityClass" $ }}
priorityClassName: {{ . }}
{{- end }}
{{- with $.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- with $values.topologySpreadConstraints }}
{{ toYaml . }}
{{- else }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "medley.selector" (list $ $part) | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end -}}

{{/* Flags, and their files, by which the operator and its check reach the scheduling service. */}}
{{- define "medley.operator.reach" -}}
- --scheduler={{ include "medley.scheduler.address" . }}
- --scheduler-token-file=/etc/medley/scheduler-token/{{ include "medley.operator.tokenKey" . }}
{{- if include "medley.scheduler.hasTls" . }}
- --scheduler-ca=/etc/medley/scheduler-ca/ca.crt
{{- end }}
{{- with .Values.watchNamespace }}
- --namespace={{ . }}
{{- end }}
{{- end -}}

{{/* The namespace of those who read metrics, or "*". */}}
{{- define "medley.metrics.namespace" -}}
{{- .Values.metrics.namespace | default .Release.Namespace -}}
{{- end -}}

{{/* Peers of a NetworkPolicy that may read metrics; empty: all. */}}
{{- define "medley.metrics.from" -}}
{{- $namespace := include "medley.metrics.namespace" . -}}
{{- if .Values.networkPolicy.metricsFrom -}}
{{- toYaml .Values.networkPolicy.metricsFrom -}}
{{- else if ne $namespace "*" -}}
- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ $namespace }}}}
{{- end -}}
{{- end -}}

{{/* Flags of the Lease, for the operator and its check. */}}
{{- define "medley.operator.lease" -}}
{{- if .Values.operator.leaderElection.enabled -}}
- --leader-elect
- --lease-name={{ include "medley.operator.name" . }}
- --lease-namespace={{ .Release.Namespace }}
{{- else -}}
- --no-leader-elect
{{- end -}}
{{- end -}}

{{- define "medley.operator.mounts" -}}
- {name: scheduler-token, mountPath: /etc/medley/scheduler-token, readOnly: true}
{{- if include "medley.scheduler.hasTls" . }}
- {name: scheduler-ca, mountPath: /etc/medley/scheduler-ca, readOnly: true}
{{- end }}
{{- with .Values.operator.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "medley.operator.volumes" -}}
- name: scheduler-token
  secret:
    secretName: {{ include "medley.scheduler.tokenSecret" . }}
    items: [{key: {{ include "medley.operator.tokenKey" . }}, path: {{ include "medley.operator.tokenKey" . }}}]
{{- if include "medley.scheduler.hasTls" . }}
- name: scheduler-ca
  secret:
    secretName: {{ include "medley.scheduler.trustSecret" . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .Values.operator.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
